"""Launches of own kernels as the candidate's process counts them, also by CUDA graphs.

The runtimes count launches in Python. A replay makes none there: it counts what was launched while its graph
was captured. All of this runs in the candidate's process: its answer is a hint, not proof.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from agentforge.languages import CPP_RUNTIME, PRELUDE

_replayed: Counter[str] = Counter()


def own_calls() -> dict[str, int]:
    """Calls of each own kernel so far: by the runtimes that the candidate loaded, and by replays."""
    found: dict[str, int] = {}
    for runtime in (CPP_RUNTIME, PRELUDE):
        calls = getattr(sys.modules.get(runtime.removesuffix(".py")), "calls", None)
        found |= calls() if callable(calls) else {}
    return found | {name: found.get(name, 0) + count for name, count in _replayed.items()}


def count_replays(graph: Any) -> None:
    """Count launches by replays in this process.

    Args:
        graph: `torch.cuda.CUDAGraph`. One with the attribute `agentforge_counted` has an owner that counts.
    """
    begin, end, play = graph.capture_begin, graph.capture_end, graph.replay

    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> None:
        self.agentforge_before = own_calls()
        begin(self, *args, **kwargs)

    def capture_end(self: Any) -> None:
        end(self)
        self.agentforge_launches = Counter(own_calls())
        self.agentforge_launches.subtract(self.agentforge_before)

    def replay(self: Any) -> None:
        play(self)
        if not hasattr(self, "agentforge_counted"):
            _replayed.update(getattr(self, "agentforge_launches", ()))

    graph.capture_begin, graph.capture_end, graph.replay = capture_begin, capture_end, replay
