"""Random faults of the endpoint and kill -9 of the supervisor: the run ends, and nothing is paid twice."""

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
from pathlib import Path
from typing import Any

import pytest

from agentforge.schema import AttemptStatus
from agentforge.store import Store
from tests.llm.server import LLMServer, Reply
from tests.loop.conftest import make_run

from .scene import role_of

ROOT = Path(__file__).resolve().parents[2]
FAULTS = ("408", "429", "500", "529", "reset", "cut", "garbage", "error-event", "bytes", "no-schema")
ODD = ("length", "refusal", "empty", "no json", "misfit", "prose")
STATUSES = ("PASSED", "PASSED", "COMPILE_ERROR", "INCORRECT_NUMERICAL", "CRASHED", "CHEATING", "TIMEOUT")


class Chaos:
    """A model that is sometimes right, at an endpoint that sometimes works. Called by several threads."""

    def __init__(self, seed: int, faults: float) -> None:
        self.random = random.Random(seed)
        self.faults = faults
        self.numbers = itertools.count()
        self.lock = threading.Lock()
        self.injected: Counter[str] = Counter()

    def __call__(self, body: dict[str, Any]) -> Reply:
        with self.lock:
            if self.random.random() < self.faults:
                kind = self.random.choice(FAULTS + ODD)
                self.injected[kind] += 1
                return self._odd(kind)
            return Reply(getattr(self, f"_{role_of(body)}")())

    @staticmethod
    def _odd(kind: str) -> Reply:
        texts = {"empty": "", "no json": "I think so.", "misfit": '{"a": 1}', "prose": "Well: `{` and ```"}
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
        return f"FILE: model_new.py\n```python\n# {json.dumps(said)}\nclass ModelNew: ...\n```\n"

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
    command = [sys.executable, "-m", "tests.agents_llm.faulty", str(folder), server.url, str(attempts)]
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


def check(folder: Path, server: LLMServer, attempts: int) -> None:
    with Store(f"sqlite:///{folder / 'agentforge.db'}") as store:
        made, calls = store.attempts("run"), store.calls("run")
    assert [a.number for a in made] == list(range(1, attempts + 1))
    assert {a.status for a in made} <= {AttemptStatus.DONE, AttemptStatus.FAILED}
    answered = [c for c in calls if c.status == "answered"]
    failed = [c for c in calls if c.status == "failed" and c.tokens_in]
    in_doubt = [c for c in calls if c.status == "begun"]
    # each answer stands in the ledger as the server counted it; what the server gave in full beside them
    # was unreadable or declined, or was under way when we were killed
    billed, ledger = Counter(server.billed), Counter((c.tokens_in, c.tokens_out) for c in answered)
    assert not ledger - billed
    assert (billed - ledger).total() <= len(failed) + len(in_doubt)
    assert sum(i + o for i, o in server.billed) <= sum(c.tokens_in + c.tokens_out for c in calls)
    keys = Counter((c.attempt, c.role, c.prompt) for c in answered)
    assert max(keys.values()) == 1


@pytest.mark.slow
def test_thirty_attempts_of_chaos(tmp_path: Path) -> None:
    with LLMServer(Chaos(1, 0.3)) as server:
        with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
            store.create_run(make_run())
        assert run_through(tmp_path, server, attempts=30, kills=3, seed=1) == 3
        check(tmp_path, server, 30)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_hundred_attempts_of_chaos_and_twenty_kills(tmp_path: Path) -> None:
    chaos = Chaos(2, 0.3)
    with LLMServer(chaos) as server:
        with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
            store.create_run(make_run())
        assert run_through(tmp_path, server, attempts=300, kills=20, seed=2) == 20
        check(tmp_path, server, 300)
        assert len(chaos.injected) >= 15
        longest = max(len(seen.prompt) for seen in server.seen)
        assert longest / 3 < 30_000, "prompts grow with the run"
