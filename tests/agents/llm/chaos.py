"""Random faults of the endpoint and kill -9 of the supervisor, for the test and for the benchmark."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentforge.schema import AttemptStatus
from agentforge.store import Store
from tests.llm.server import LLMServer, Reply

from .scene import role_of

ROOT = Path(__file__).resolve().parents[3]
FAULTS = ("408", "429", "500", "529", "reset", "cut", "garbage", "error-event", "bytes", "no-schema")
ODD = ("length", "refusal", "empty", "no json", "misfit", "prose", "no fence", "two fences", "crlf")
STATUSES = ("PASSED", "PASSED", "COMPILE_ERROR", "INCORRECT_NUMERICAL", "CRASHED", "CHEATING", "TIMEOUT")


class Chaos:
    """A model that is sometimes right, at an endpoint that sometimes works. Called by several threads."""

    def __init__(self, seed: int, faults: float, kinds: tuple[str, ...] = FAULTS + ODD) -> None:
        self.random = random.Random(seed)
        self.faults = faults
        self.kinds = kinds
        self.numbers = itertools.count()
        self.lock = threading.Lock()
        self.injected: Counter[str] = Counter()

    def __call__(self, body: dict[str, Any]) -> Reply:
        with self.lock:
            if self.random.random() < self.faults:
                kind = self.random.choice(self.kinds)
                self.injected[kind] += 1
                return self._odd(kind)
            return Reply(getattr(self, f"_{role_of(body)}")())

    @staticmethod
    def _odd(kind: str) -> Reply:
        texts = {
            "empty": "",
            "no json": "I think so.",
            "misfit": '{"a": 1}',
            "prose": "Well: `{` and ```",
            "no fence": "class ModelOld: ...",
            "two fences": "```python\nclass ModelNew: ...\n```\n```python\nclass ModelNew: ...\n```\n",
            "crlf": '{"a": 1}\r\n```python\r\n```\r\n',
        }
        if kind in ("length", "refusal"):
            return Reply("half", stop=kind)
        if kind in texts:
            return Reply(texts[kind])
        return Reply("some words to cut in the middle ¿ of them", fault=kind)

    def _planner(self) -> str:
        answer = {
            "bottleneck": "memory", "diagnosis": "d", "evidence": [{"metric": "share", "value": 0.5}],
            "strategy": f"s{self.random.randrange(40)}", "steps": ["go"], "parameters": [],
            "expected_speedup": 2.0, "risks": [],
        }  # fmt: skip
        return json.dumps(answer)

    def _coder(self) -> str:
        said = {
            "speed": round(self.random.uniform(0.5, 3.0), 3),
            "status": self.random.choice(STATUSES),
            "number": next(self.numbers),
        }
        return f"FILE: model_new.py\n```python\nSAID = {json.dumps(said)}\nclass ModelNew: ...\n```\n"

    def _judge(self) -> str:
        both = {
            "cause": "c",
            "fix": "f",
            "hopeless": self.random.random() < 0.2,
            "bottleneck": "b",
            "change": "c",
        }
        return json.dumps(
            {**both, "verdict": "optimize", "evidence": [{"metric": "x", "value": 1}], "expected_gain": 0.1}
        )


def run_through(folder: Path, server: LLMServer, *, attempts: int, kills: int, seed: int) -> int:
    """Run to the end over kills at random moments; how often it was killed."""
    generator, killed = random.Random(seed), 0
    command = [sys.executable, "-m", "tests.agents.llm.faulty", str(folder), server.url, str(attempts)]
    for _ in range(kills * 3 + 20):
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if killed < kills:
            # some calls after the start, and then anywhere
            wanted = len(server.seen) + generator.randint(1, 3 * attempts // kills)
            while process.poll() is None and len(server.seen) < wanted:
                server.wait(0.01)
            server.wait(generator.uniform(0, 0.1))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                killed += 1
        out, err = process.communicate(timeout=600)
        if process.returncode == 0:
            assert out.split() == [str(attempts)]
            return killed
        assert process.returncode == -signal.SIGKILL or "failed in a row" in err, err[-2000:]
    raise AssertionError("it never came to an end")


@dataclass(frozen=True)
class Account:
    """What ledger and server say of the same run."""

    attempts: int
    answered: int
    """Calls whose answer the ledger holds."""
    failed: int
    in_doubt: int
    """Calls that were under way at a kill: paid perhaps, and counted at the most that they can cost."""
    ledger_tokens: int
    """Of answered calls."""
    server_tokens: int
    """Of the same answers, as the server counted them."""
    ledger_all: int
    """Failed ones and those in doubt among them."""
    server_all: int
    """All that the server gave in full."""
    paid_twice: int


def check(folder: Path, server: LLMServer, attempts: int) -> Account:
    """Hold the ledger against what the server counted.

    Raises:
        AssertionError: an attempt was lost, a call paid twice, the sums differ.
    """
    with Store(f"sqlite:///{folder / 'agentforge.db'}") as store:
        made, calls = store.attempts("run"), store.calls("run")
    assert [a.number for a in made] == list(range(1, attempts + 1)), "an attempt was lost"
    assert {a.status for a in made} <= {AttemptStatus.DONE, AttemptStatus.FAILED}, "an attempt was left"
    answered = [c for c in calls if c.status == "answered"]
    failed = [c for c in calls if c.status == "failed" and c.tokens_in]
    in_doubt = [c for c in calls if c.status == "begun"]
    # each answer stands in the ledger as the server counted it; what the server gave in full beside them
    # was unreadable or declined, or was under way when we were killed
    billed, ledger = Counter(server.billed), Counter((c.tokens_in, c.tokens_out) for c in answered)
    assert not ledger - billed, "the ledger holds what the server did not count"
    assert (billed - ledger).total() <= len(failed) + len(in_doubt), "a paid call is not in the ledger"
    whole, counted = sum(c.tokens_in + c.tokens_out for c in calls), sum(i + o for i, o in server.billed)
    assert counted <= whole, "the ledger holds less than was paid"
    keys = Counter((c.attempt, c.role, c.prompt) for c in answered)
    assert max(keys.values()) == 1, "a call was paid twice"
    return Account(
        attempts=len(made),
        answered=len(answered),
        failed=len(failed),
        in_doubt=len(in_doubt),
        ledger_tokens=sum(c.tokens_in + c.tokens_out for c in answered),
        server_tokens=sum(sum(pair) * n for pair, n in (billed & ledger).items()),
        ledger_all=whole,
        server_all=counted,
        paid_twice=sum(n - 1 for n in keys.values()),
    )
