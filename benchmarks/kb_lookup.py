"""Time look-ups of the knowledge base with many outcomes.

    python benchmarks/kb_lookup.py                                 # 1,000,000 outcomes in 500 contexts
    python benchmarks/kb_lookup.py --outcomes 10000 --contexts 50 --out mine.json
    python benchmarks/kb_lookup.py --settings 8                    # of each strategy's parameters

Fills a SQLite database of its own with outcomes of the playbook's strategies: random contexts of operators,
shapes and dtypes on one machine, random speedups, a fifth of them failures. Then it asks for the ranked
strategies of random contexts, as a planner does. `summary_s` is the time to sum up all outcomes, `write_ms`
the median time to record one more outcome, `first_s` the first look-up of a process; `median_ms` and
`percentile_95_ms` are of the following ones, and the same with `cpu` of their processor time. Writes
benchmarks/results/kb_lookup.json.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import create_engine, insert

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from _provenance import provenance  # noqa: E402

from agentforge.config import sqlite_url  # noqa: E402
from agentforge.knowledge import KnowledgeBase, load_folder  # noqa: E402
from agentforge.resources import resource  # noqa: E402
from agentforge.schema import Context, EvaluationStatus, Evidence, Outcome, Strategy  # noqa: E402
from agentforge.store import Store  # noqa: E402
from agentforge.store.tables import OutcomeRow  # noqa: E402

RESULTS = HERE / "results" / "kb_lookup.json"
KINDS = ("pointwise", "reduction", "matmul", "conv")
_PART = 20_000
"""Rows of one insertion."""


def contexts(count: int, draw: random.Random, operators: Sequence[str]) -> list[Context]:
    """Distinct contexts of one machine."""
    found: dict[str, Context] = {}
    while len(found) < count:
        kinds = tuple((kind, draw.randint(1, 6)) for kind in sorted(draw.sample(KINDS, draw.randint(1, 3))))
        made = Context(
            op_type=draw.choice(operators),
            shape_class=f"{draw.choice(('l1', 'l2', 'llc', 'dram'))}/{draw.choice(('few', 'many'))}-rows",
            dtype=draw.choice(("float32", "bfloat16")),
            architecture="x86-64 avx512",
            toolchain="g++-12",
            operators=kinds,
            intensity=draw.randint(-3, 8),
        )
        found[made.hash] = made
    return list(found.values())


def settings(card: Strategy, most: int, draw: random.Random) -> list[dict[str, Any]]:
    """Some settings of a strategy's parameters, the card's own one first."""
    found: list[dict[str, Any]] = [{}]
    for _ in range(most - 1):
        found.append({name: draw.choice(values) for name, values in card.parameters.items() if values})
    return found


def outcomes(
    count: int, known: Sequence[Context], strategies: Mapping[str, Sequence[Any]], draw: random.Random
) -> Iterator[Outcome]:
    """Random results of the strategies with their settings; every fifth one is a failure."""
    newest, names = datetime.now(UTC), [*strategies]
    for number in range(count):
        failed, strategy = draw.random() < 0.2, draw.choice(names)
        yield Outcome(
            id=f"o{number:09d}",
            strategy=strategy,
            context=draw.choice(known),
            solution=f"s{number}",
            evaluation=f"e{number}",
            status=EvaluationStatus.RUNTIME_ERROR if failed else EvaluationStatus.PASSED,
            evidence=Evidence.UNVERIFIED if failed else Evidence.VERIFIED,
            log_speedup=None if failed else draw.gauss(0.1, 0.3),
            parameters=draw.choice(strategies[strategy]),
            time=newest - timedelta(minutes=number % 500_000),
        )


def fill(url: str, found: Iterator[Outcome]) -> None:
    """Insert the outcomes; the store's own way looks for each one first."""
    rows: list[dict[str, Any]] = []
    engine = create_engine(url)

    def keep() -> None:
        with engine.begin() as connection:
            connection.execute(insert(OutcomeRow), rows)
        rows.clear()

    for o in found:
        row = {name: getattr(o, name) for name in ("id", "strategy", "solution", "run", "log_speedup")}
        row |= {"credit": o.credit, "after": o.after, "generator": o.generator, "time": o.time}
        row |= {"context": o.context.hash, "op_type": o.context.op_type, "status": o.status.value}
        row |= {"parameters": json.dumps(o.parameters, sort_keys=True), "evidence": o.evidence.value}
        rows.append({**row, "body": o.model_dump_json()})
        if len(rows) == _PART:
            keep()
    if rows:
        keep()
    engine.dispose()


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds that a call takes, and seconds of processor time."""
    begun, busy = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - begun, time.process_time() - busy


def main(argv: Sequence[str] | None = None) -> int:
    """Fill a database, measure, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--outcomes", type=int, default=1_000_000)
    parser.add_argument("--contexts", type=int, default=500)
    parser.add_argument("--settings", type=int, default=1)
    parser.add_argument("--lookups", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--database", type=Path, help="keep it there; one that exists is not filled again")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    draw, playbook = random.Random(options.seed), resource("knowledge_base", "playbook")
    cards = [card for card in load_folder(playbook).values() if isinstance(card, Strategy)]
    operators = sorted({op for card in cards for op in card.op_types}) or ["pointwise"]
    known = contexts(options.contexts, draw, operators)
    tried = {card.id: settings(card, options.settings, draw) for card in cards}
    with tempfile.TemporaryDirectory(prefix="agentforge_lookup_") as folder:
        file = options.database or Path(folder, "agentforge.db")
        url, summary_s, filled = sqlite_url(file.absolute()), None, file.exists()
        with Store(url) as store:
            if not filled:
                fill(url, outcomes(options.outcomes, known, tried, draw))
                summary_s = round(timed(store.rebuild_summary)[0], 1)
            base = KnowledgeBase(store, [playbook])
            asked = draw.choices(known, k=options.lookups + 1)
            (first, _), *seconds = [timed(partial(base.ranked, context)) for context in asked]
            more = outcomes(options.lookups, known, tried, draw)
            new = [one.model_copy(update={"id": f"{one.id} {time.time_ns()}"}) for one in more]
            writes = [timed(partial(store.record_outcomes, [one]))[0] for one in new]
            total = store.outcome_totals().outcomes - len(new)
        size = file.stat().st_size
    lookup_ms, cpu_ms = np.array(seconds).T * 1e3
    found = {
        "outcomes": total,
        "contexts": options.contexts,
        "strategies": len(cards),
        "settings": options.settings,
        "lookups": options.lookups,
        "database_mib": size >> 20,
        "summary_s": summary_s,
        "write_ms": round(float(np.median(writes)) * 1e3, 2),
        "first_s": round(first, 3),
        "median_ms": round(float(np.median(lookup_ms)), 2),
        "percentile_95_ms": round(float(np.percentile(lookup_ms, 95)), 2),
        "median_cpu_ms": round(float(np.median(cpu_ms)), 2),
        "percentile_95_cpu_ms": round(float(np.percentile(cpu_ms, 95)), 2),
    }
    options.out.write_text(json.dumps({"provenance": provenance(), "result": found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
