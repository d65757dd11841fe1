"""Escape tests: does the referee survive what is thrown at it, say so, and judge the next one rightly?

    python benchmarks/adversarial/escape.py [--only NAME] [--rounds 1] [--output FILE]

Each attack on the machine (resources, files, network, signals, processes, the channel) is judged at level
`quick`; right after it an honest kernel of the same problem must pass. Before and after all of them the
process tree, descriptors, shared memory and temporary folders are counted. After each attack the results so
far are written beside FILE with the suffix `.part`.
"""

from __future__ import annotations

import argparse
import gc
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import psutil  # noqa: E402
from _provenance import provenance  # noqa: E402
from _published import whole_or_elsewhere, write_results  # noqa: E402
from corpus import Case, load_cases  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from run import Judging, canary  # noqa: E402
from verdicts import GOOD, Outcome, Record  # noqa: E402

from agentforge.schema import Level  # noqa: E402

RESULTS = HERE.parent / "results" / "escape.json"
FAMILIES = (27, 40, 41, 42, 43, 44)
"""Exit codes, protocol, resources, escapes, hijacks, builds."""
_PORT = 47474


class Footprint(BaseModel):
    """What this process and its descendants hold."""

    processes: int
    descriptors: int
    shared_memory: int
    folders: int
    resident_mb: int

    @classmethod
    def now(cls) -> Footprint:
        """Count; the referee must be closed, so that what is left was leaked."""
        gc.collect()  # a failure's traceback and the frames in it hold each other, and what those have open
        me = psutil.Process()
        # Of this process alone: other referees may be at work beside it.
        folders = list(Path(tempfile.gettempdir()).glob(f"agentforge-referee-{os.getpid()}-*"))
        return cls(
            processes=len(me.children(recursive=True)),
            descriptors=me.num_fds(),
            shared_memory=len(list(Path("/dev/shm").glob("agentforge*"))),
            folders=len(folders),
            resident_mb=me.memory_info().rss >> 20,
        )

    def grown(self, before: Footprint) -> list[str]:
        """What there is more of than before; memory may grow by a little."""
        found = [
            f"{getattr(self, name) - getattr(before, name)} more {name}"
            for name in ("processes", "descriptors", "shared_memory", "folders")
            if getattr(self, name) > getattr(before, name)
        ]
        if self.resident_mb > before.resident_mb + 200:
            found.append(f"{self.resident_mb - before.resident_mb} MB more memory")
        return found


class Trial(BaseModel):
    """One attack and the verdict on the honest kernel that came next."""

    attack: Record
    after: Record
    survived: bool
    """The attack was caught, left nothing behind, and the next verdict was right."""


@contextmanager
def listener() -> Iterator[list[str]]:
    """A loopback server that no candidate may reach; yields the addresses of those that did."""
    reached: list[str] = []
    with socket.create_server(("127.0.0.1", _PORT), reuse_port=True) as server:
        server.settimeout(0.2)
        done = threading.Event()

        def serve() -> None:
            while not done.is_set():
                try:
                    connection, address = server.accept()
                except TimeoutError:
                    continue
                reached.append(str(address))
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield reached
        finally:
            done.set()
            thread.join()


def honest_for(attack: Case, cases: Sequence[Case]) -> Case:
    """A right kernel for the same problem, in plain torch, under the policy of its own."""
    return next(
        c for c in cases if c.kind == "honest" and c.problem == attack.problem and c.path.suffix == ".py"
    )


def trial(judging: Judging, attack: Case, cases: Sequence[Case]) -> Trial:
    """Judge an attack, then an honest kernel with the same referee."""
    first = judging.evaluate(attack)
    second = judging.evaluate(honest_for(attack, cases))
    return Trial(
        attack=first,
        after=second,
        survived=first.outcome in GOOD and second.outcome is Outcome.RIGHT,
    )


def table(trials: Sequence[Trial]) -> Table:
    """What was said of each attack, and of the honest kernel after it."""
    made = Table(title="Escape tests", title_justify="left")
    for column in ("attack", "outcome", "status", "seconds", "what the referee says", "next"):
        made.add_column(column, overflow="fold")
    for t in trials:
        reason = t.attack.reasons[0][:70] if t.attack.reasons else ""
        row = (
            t.attack.name,
            t.attack.outcome.value,
            t.attack.status,
            f"{t.attack.seconds:.1f}",
            reason,
            t.after.status,
        )
        made.add_row(*row, style="" if t.survived else "red")
    return made


def counted(trials: Sequence[Trial]) -> dict[str, Any]:
    """The trials so far, as the results file holds them."""
    survived = sum(t.survived for t in trials)
    return {"survived": survived, "trials": [t.model_dump(mode="json") for t in trials]}


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Escape tests of the referee.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="part of a name")
    return whole_or_elsewhere(parser, argv, RESULTS, output="output")


def main(argv: Sequence[str] | None = None) -> int:
    """Run all escape tests; exit code 1 where one did harm or something was leaked."""
    options = arguments(argv)
    console, cases = Console(), load_cases()
    attacks = [c for c in cases if c.kind == "hostile" and c.family in FAMILIES and options.only in c.name]
    started, trials = provenance(), []
    with (
        tempfile.TemporaryDirectory(prefix="agentforge_survival_") as cache,
        canary(),
        listener() as reached,
    ):
        judging = Judging(Level.QUICK, compiled=False, cache=Path(cache))
        # What libraries open once for good is no leak: count after a first evaluation.
        judging.evaluate(honest_for(attacks[0], cases))
        judging.close()
        before = Footprint.now()
        try:
            for attack in attacks * options.rounds:
                trials.append(trial(judging, attack, cases))
                write_results(options.output, {**started, **counted(trials)}, whole=False)
                last = trials[-1]
                mark = "survived" if last.survived else "HARM"
                console.print(
                    f"{mark} {attack.name}: {last.attack.status}, then {last.after.status}", markup=False
                )
        finally:
            judging.close()
        time.sleep(0.5)
        leaked = Footprint.now().grown(before)
    console.print(table(trials))
    found = counted(trials)
    console.print(f"{found['survived']} of {len(trials)} survived; leaked: {', '.join(leaked) or 'nothing'}")
    content = {**started, **found, "leaked": leaked, "reached_the_network": reached}
    write_results(options.output, content, whole=True)
    return int(found["survived"] < len(trials) or bool(leaked) or bool(reached))


if __name__ == "__main__":
    raise SystemExit(main())
