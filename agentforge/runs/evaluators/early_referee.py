"""A referee whose processes can start before its first question."""

from __future__ import annotations

from agentforge.referee.referee import Referee
from agentforge.referee.workers.forkserver import CANDIDATE, COMPILED, EAGER
from agentforge.referee.workers.process import Forkserver


class EarlyReferee(Referee):
    """See `Referee`."""

    def servers(self) -> tuple[Forkserver, ...]:
        """The processes from which the workers of a verdict are forked; not all have been started.

        Call it once the referee is open.
        """
        assert self._build_server is not None
        kinds = (EAGER, CANDIDATE, COMPILED) if self.settings.compile_baseline else (EAGER, CANDIDATE)
        return self._build_server, *map(self._server, kinds)
