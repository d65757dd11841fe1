"""Run many attempts against an endpoint that fails at random, and kill the supervisor repeatedly.

    python benchmarks/llm_faults.py [--attempts 300] [--kills 20] [--seed 2] [--out FILE]

SDK, wire format, ledger, store and loop are real; the endpoint is a local server and the referee is
simulated. The run must end. No attempt may be lost, no call paid twice, and the ledger must match the
server's counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from _provenance import provenance  # noqa: E402
from _published import whole_or_elsewhere  # noqa: E402

from agentforge.store import Store  # noqa: E402
from tests.agents.llm.chaos import FAULTS, ODD, Chaos, check, run_through  # noqa: E402
from tests.llm.server import LLMServer  # noqa: E402
from tests.loop.conftest import make_run  # noqa: E402

RESULT = Path(__file__).parent / "results" / "llm_faults.json"
CHARACTERS = 3
"""Dollars per token, at least."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=300)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--faults", type=float, default=0.3, help="fraction of calls that fail")
    return whole_or_elsewhere(parser, argv, RESULT)


def main() -> int:
    """Run, compare the sums, write the result."""
    asked = arguments()
    chaos, started = Chaos(asked.seed, asked.faults, (*FAULTS, *ODD, "stall")), time.monotonic()
    with tempfile.TemporaryDirectory() as name, LLMServer(chaos) as server:
        folder = Path(name)
        with Store(f"sqlite:///{folder / 'agentforge.db'}") as store:
            store.create_run(make_run())
        killed = run_through(folder, server, attempts=asked.attempts, kills=asked.kills, seed=asked.seed)
        account = check(folder, server, asked.attempts)
        prompts = sorted(len(seen.prompt) // CHARACTERS for seen in server.seen)
        found = {
            **asdict(account),
            "kills": killed,
            "requests": len(server.seen),
            "faults": dict(chaos.injected),
            "prompt_tokens_most": prompts[-1],
            "prompt_tokens_median": prompts[len(prompts) // 2],
            "seconds": round(time.monotonic() - started, 1),
        }
    asked.out.write_text(json.dumps({"provenance": provenance(), "result": found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    whole = killed == asked.kills and account.ledger_tokens == account.server_tokens
    return 0 if whole and not account.paid_twice else 1


if __name__ == "__main__":
    raise SystemExit(main())
