"""The referee on real candidates: statuses, tricks, and that the next evaluation is right."""

from __future__ import annotations

import gc
import os
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agentforge.config import RefereeSettings
from agentforge.isolation.procfs import descendants
from agentforge.referee import EvaluationRequest, Referee
from agentforge.referee.timing import timer as timing
from agentforge.referee.workers.forkserver import COMPILED, COMPILER
from agentforge.referee.workers.worker import Worker
from agentforge.schema import (
    Definition,
    Evaluation,
    EvaluationStatus,
    Evidence,
    HarnessError,
    Level,
    Solution,
    TargetError,
    UsageError,
    Workload,
)
from agentforge.testing.language import make_solution

from .judging import DEVICE

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = torch.nn.LayerNorm(n)

    def forward(self, x):
        return torch.relu(self.norm(x))

def get_inputs():
    return [torch.randn(48, 96)]

def get_init_inputs():
    return [96]
"""
RIGHT = REFERENCE.replace("class Model(", "class ModelNew(")
DEFINITION = Definition(name="norm_relu", op_type="norm", reference=REFERENCE)
WORKLOAD = Workload(name="48x96", source="reference")


def model(forward: str, before: str = "", init: str = "pass") -> str:
    body = "\n".join("        " + line for line in forward.strip().splitlines())
    return f"""
import os, sys, time, threading, torch
{before}
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = torch.nn.LayerNorm(n)
        {init}

    def right(self, x):
        return torch.relu(self.norm(x))

    def forward(self, x):
{body}
"""


def solution(source: str, definition: Definition = DEFINITION) -> Solution:
    return make_solution("python", {"model_new.py": source}, definition=definition.hash)


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    settings = RefereeSettings(
        threads=1,
        compile_baseline=False,
        quick_blocks=4,
        quick_seconds=0.2,
        call_timeout_s=3,
        build_timeout_s=3,
    )
    with Referee(settings, device=DEVICE, cache=tmp_path_factory.mktemp("cache")) as it:
        yield it


def comparator(referee: Referee, source: str, level: Level = Level.QUICK) -> Evaluation:
    return referee.evaluate(EvaluationRequest(DEFINITION, [WORKLOAD], solution(source), level=level))


def test_a_right_answer_passes_and_is_measured(referee):
    seen: list[str] = []
    evaluation = referee.evaluate(
        EvaluationRequest(DEFINITION, [WORKLOAD], solution(RIGHT)), progress=seen.append
    )
    assert evaluation.status is EvaluationStatus.PASSED, evaluation.reasons
    assert evaluation.evidence is Evidence.UNVERIFIED
    assert evaluation.performance is not None
    assert 0 < evaluation.performance.blocks <= 8  # those of a loud moment are left out
    assert set(evaluation.performance.speedup) == {"eager"}
    assert evaluation.correctness is not None
    assert evaluation.correctness.checked_calls > 20
    assert {u.name for u in evaluation.kernels} >= {"aten.relu.default"}
    assert "timing" in seen
    assert [s.name for s in evaluation.stages][:1] == ["build"]


LISTED = Definition(
    name="listed",
    op_type="model",
    reference=REFERENCE.replace(
        "def get_inputs():", "workloads = ('a', 'b', 'c')\n\ndef get_inputs(workload='a'):"
    ).replace("torch.randn(48, 96)", "torch.randn(32 * (ord(workload) - 96), 96)"),
)
EACH = [Workload(name=name, key=name, source="reference") for name in "abc"]


def test_one_verdict_has_a_figure_for_each_workload(referee):
    found = referee.evaluate(EvaluationRequest(LISTED, EACH, solution(RIGHT, LISTED)))
    assert found.status is EvaluationStatus.PASSED, found.reasons
    assert found.performance is not None
    assert list(found.performance.workload_speedup) == ["a", "b", "c"]
    assert all(over["eager"].low > 0 for over in found.performance.workload_speedup.values())
    seconds = [found.performance.workload_s[w.name]["eager"] for w in EACH]
    assert min(seconds) < found.performance.baseline_s["eager"] < max(seconds)


@pytest.mark.parametrize("wrong", "abc")
def test_a_solution_that_is_wrong_on_one_workload_is_refused(referee, wrong):
    rows = 32 * (ord(wrong) - 96)
    source = model(f"return self.right(x) * (1.01 if len(x) == {rows} else 1.0)", init="")
    found = referee.evaluate(EvaluationRequest(LISTED, EACH, solution(source, LISTED)))
    assert found.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert found.reasons[0].startswith(f"workload {wrong}: ")


def test_in_server_mode_every_call_of_a_turn_comes_after_a_pause(referee, monkeypatch):
    """A call that is not timed as well: else a candidate would know which one is."""
    pauses: list[float] = []
    monkeypatch.setattr(timing, "_sleep", pauses.append)
    monkeypatch.setattr(referee, "settings", referee.settings.model_copy(update={"server_gap_s": 0.05}))
    evaluation = comparator(referee, RIGHT)
    assert evaluation.passed, evaluation.reasons
    assert "server mode" in evaluation.environment.notes["calls"]
    clients, turn = 3, timing.turn_shape(1e-4, 1 << 10).calls
    assert len(pauses) >= 2 * clients * turn
    assert 0.01 < statistics.fmean(pauses) < 0.2


WRONG = {
    "zeros": ("return torch.zeros_like(x)", EvaluationStatus.INCORRECT_NUMERICAL),
    "half": ("return self.right(x).half().float()", EvaluationStatus.INCORRECT_NUMERICAL),
    "shape": ("return self.right(x)[:1]", EvaluationStatus.INCORRECT_SHAPE),
    "broadcast": ("return self.right(x)[None]", EvaluationStatus.INCORRECT_SHAPE),
    "dtype": ("return self.right(x).double()", EvaluationStatus.INCORRECT_DTYPE),
    "tuple": ("return (self.right(x),)", EvaluationStatus.INCORRECT_SHAPE),
    "nothing": ("return None", EvaluationStatus.INCORRECT_SHAPE),
    "object": ("return object()", EvaluationStatus.INCORRECT_SHAPE),
    "unknown type": ("return self.right(x).to(torch.uint16)", EvaluationStatus.INCORRECT_SHAPE),
    "raises": ("raise ValueError('no')", EvaluationStatus.RUNTIME_ERROR),
    "exits": ("os._exit(0)", EvaluationStatus.CRASHED),
    "segfault": ("import ctypes; ctypes.string_at(0)", EvaluationStatus.CRASHED),
    "abort": ("os.abort()", EvaluationStatus.CRASHED),
    "memory": ("return torch.empty(1 << 45)", EvaluationStatus.OUT_OF_MEMORY),
    "ignores weights": ("return torch.relu(torch.nn.functional.layer_norm(x, (96,)))",
                        EvaluationStatus.INCORRECT_NUMERICAL),
}  # fmt: skip


def test_a_wrong_candidate_does_not_wait_for_a_compiled_baseline(
    referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, forked = threading.Event(), threading.Event()

    class Compiler:
        def start(self) -> None: ...

        def fork(self, *_: object, background: bool, env: Mapping[str, str]) -> Worker:
            assert background and env
            forked.set()
            judged.wait(300)
            raise HarnessError("it is never ready")

    monkeypatch.setattr(referee, "settings", referee.settings.model_copy(update={"compile_baseline": True}))
    for kind in (COMPILER, COMPILED):
        monkeypatch.setitem(referee._servers, kind, Compiler())
    referee.release()
    evaluation = comparator(referee, model("return torch.zeros_like(x)"))
    assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert set(referee.baselines(DEFINITION, [WORKLOAD]).clients) == {"eager", "control"}
    assert forked.is_set()
    judged.set()
    referee.release()


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_has_its_status(referee, name):
    forward, status = WRONG[name]
    evaluation = comparator(referee, model(forward))
    assert evaluation.status is status, (evaluation.status, evaluation.reasons)
    assert evaluation.reasons
    assert evaluation.performance is None


TRICKS = {
    "memo by address": model(
        "k = x.data_ptr()\nif k not in seen: seen[k] = self.right(x)\nreturn seen[k].clone()", "seen = {}"
    ),
    "static buffer": model("out.copy_(self.right(x)); return out", "out = torch.empty(48, 96)"),
    "buffers in turn": model(
        "ring.append(ring.pop(0)); ring[0].copy_(self.right(x)); return ring[0]",
        "ring = [torch.empty(48, 96) for _ in range(5)]",
    ),
    "filled when it is fetched": model(
        "y = torch.empty_like(x); late.append((y, x)); return y",
        "late, put = [], torch.Tensor.copy_\n"
        "def fill(self, source, *a, **k):\n"
        "    if late:\n        y, x = late.pop(); put(y, model.right(x))\n"
        "    return put(self, source, *a, **k)\n"
        "torch.Tensor.copy_ = fill",
        "globals().update(model=self)",
    ),
    "reads ahead": model(
        "known = ready.pop(float(x[0, 0]), None)\n"
        "return known if known is not None else (time.sleep(0.002), self.right(x))[1]",
        "ready, frame = {}, sys._getframe()\n"
        "while not hasattr(frame.f_locals.get('self'), '_slots'): frame = frame.f_back\n"
        "server = frame.f_locals['self']\n"
        "def watch(model):\n"
        "    while True:\n"
        "        for (x,), _ in list(server._slots):\n"
        "            ready.setdefault(float(x[0, 0]), model.right(x))",
        "threading.Thread(target=watch, args=(self,), daemon=True).start()",
    ),
    "call counter": model(
        "count.append(1)\nreturn self.right(x) if len(count) < 9 else torch.zeros_like(x)", "count = []"
    ),
    "writes to inputs": model("y = self.right(x); x.zero_(); return y"),
    "lazy clone": model("return torch._lazy_clone(self.right(x))"),
    "lazy subclass": model("return self.right(x).as_subclass(Lazy)", "class Lazy(torch.Tensor): pass"),
    "goes on working": model(
        "if not t: t.append(threading.Thread(target=burn, daemon=True)); t[0].start()\nreturn self.right(x)",
        "t = []\ndef burn():\n    while True: torch.randn(256, 256) @ torch.randn(256, 256)",
    ),
    "late thread": model(
        "y = torch.empty_like(x)\nthreading.Thread(target=late, args=(self, x, y)).start()\nreturn y",
        "def late(self, x, y):\n    time.sleep(0.05); y.copy_(self.right(x))",
    ),
    "patched comparators and clocks": model(
        "return torch.zeros_like(x)",
        "torch.allclose = torch.equal = lambda *a, **k: True\n"
        "time.perf_counter = time.perf_counter_ns = lambda: 0",
    ),
    "returns its input": model("return x"),
    "forged answers": model(
        "return self.right(x)",
        "import struct, json\nfor fd in range(3, 64):\n"
        "    try:\n        m = json.dumps({'id': 'x', 'ns': 1}).encode()\n"
        "        os.write(fd, struct.pack('!I', len(m)) + m)\n"
        "    except OSError: pass",
    ),
}


FOUND = {
    "memo by address": EvaluationStatus.INCORRECT_NUMERICAL,
    "static buffer": EvaluationStatus.CHEATING,
    "buffers in turn": EvaluationStatus.CHEATING,
    "filled when it is fetched": EvaluationStatus.INCORRECT_NUMERICAL,
    "reads ahead": EvaluationStatus.CHEATING,
    "call counter": EvaluationStatus.NONDETERMINISTIC,
    "writes to inputs": EvaluationStatus.CHEATING,
    "lazy clone": EvaluationStatus.CHEATING,
    "lazy subclass": EvaluationStatus.CHEATING,
    "goes on working": EvaluationStatus.CHEATING,
    "late thread": EvaluationStatus.INCORRECT_NUMERICAL,
    "patched comparators and clocks": EvaluationStatus.INCORRECT_NUMERICAL,
    "returns its input": EvaluationStatus.INCORRECT_NUMERICAL,
    "forged answers": EvaluationStatus.CHEATING,
}


@pytest.mark.parametrize("name", TRICKS)
def test_tricks_have_their_status(referee, name):
    evaluation = comparator(referee, TRICKS[name])
    assert evaluation.status is FOUND[name], (evaluation.status, evaluation.reasons)
    assert (evaluation.evidence is Evidence.SUSPICIOUS) == (FOUND[name] is EvaluationStatus.CHEATING)


@pytest.mark.slow
def test_a_thread_pool_may_spin_for_a_moment_after_its_answer(referee):
    pool = model(
        "t[0].join() if t else None\n"
        "t[:] = [threading.Thread(target=spin, daemon=True)]; t[0].start()\nreturn self.right(x)",
        "t = []\ndef spin():\n"
        "    end = time.perf_counter() + 0.1\n    while time.perf_counter() < end: sum(range(1000))",
    )
    evaluation = comparator(referee, pool)
    assert evaluation.passed, evaluation.reasons
    stage = next(s for s in evaluation.stages if s.name == "aftermath")
    assert stage.detail.startswith("0.0"), stage.detail


REFUSED = {
    "empty": ("", EvaluationStatus.RUNTIME_ERROR),
    "not python": ("def (", EvaluationStatus.COMPILE_ERROR),
    "binary": ("\0\1\2", EvaluationStatus.COMPILE_ERROR),
    "no ModelNew": ("x = 1", EvaluationStatus.RUNTIME_ERROR),
    "other arguments": (
        RIGHT.replace("__init__(self, n)", "__init__(self, n, m)"),
        EvaluationStatus.RUNTIME_ERROR,
    ),
    "not a class": ("ModelNew = 3", EvaluationStatus.RUNTIME_ERROR),
    "huge": ("#" * (17 << 20), EvaluationStatus.COMPILE_ERROR),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_solutions_get_a_status(referee, name):
    source, status = REFUSED[name]
    evaluation = comparator(referee, source)
    assert evaluation.status is status, evaluation.reasons
    assert evaluation.reasons[0]


@pytest.mark.slow
def test_a_hang_that_ignores_signals_is_killed_and_the_next_one_is_right(referee):
    hang = model(
        "import signal\nfor n in range(1, 32):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\n"
        "if os.fork() == 0: os.setsid()\nwhile True: pass"
    )
    evaluation = comparator(referee, hang)
    assert evaluation.status is EvaluationStatus.TIMEOUT
    stops = comparator(referee, model("os.kill(os.getpid(), 19); return self.right(x)"))
    assert stops.status is EvaluationStatus.TIMEOUT
    assert comparator(referee, RIGHT).passed


def test_nothing_leaks(referee):
    """Descriptors, processes and files; what an earlier test left may still end meanwhile."""
    comparator(referee, RIGHT)

    def state() -> tuple[int, int, int]:
        gc.collect()  # cycles may hold descriptors
        files = list(referee._folder.iterdir())
        return len(list(Path("/proc/self/fd").iterdir())), len(descendants(os.getpid())), len(files)

    before = state()
    for source in (RIGHT, model("os._exit(1)"), model("raise ValueError"), "def (", model("return x")):
        comparator(referee, source)
    end = time.monotonic() + 20
    while time.monotonic() < end and any(now > then for now, then in zip(state(), before, strict=True)):
        time.sleep(0.1)
    after = state()
    assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)


def test_bad_references_are_clear_errors(referee):
    broken = DEFINITION.model_copy(update={"reference": REFERENCE.replace("torch.relu", "torch.rellu")})
    with pytest.raises(TargetError, match="does not run"):
        referee.evaluate(EvaluationRequest(broken, [WORKLOAD], solution(RIGHT, broken)))
    random = DEFINITION.model_copy(update={"reference": REFERENCE.replace("torch.relu(", "torch.rand_like(")})
    with pytest.raises(TargetError, match="two calls on the same inputs differ"):
        referee.evaluate(EvaluationRequest(random, [WORKLOAD], solution(RIGHT, random)))
    with pytest.raises(UsageError, match="another definition"):
        referee.evaluate(EvaluationRequest(broken, [WORKLOAD], solution(RIGHT)))
    with pytest.raises(UsageError, match="workload"):
        referee.evaluate(EvaluationRequest(DEFINITION, [], solution(RIGHT)))
    assert comparator(referee, RIGHT).passed


@pytest.mark.slow
def test_a_weak_task_verifies_nothing(referee):
    weak = DEFINITION.model_copy(update={"reference": REFERENCE.replace("torch.relu(", "torch.zeros_like(")})
    source = RIGHT.replace("torch.relu(", "torch.zeros_like(")
    evaluation = referee.evaluate(EvaluationRequest(weak, [WORKLOAD], solution(source, weak)))
    assert evaluation.evidence is Evidence.SUSPICIOUS
    assert "cannot tell zeros" in evaluation.reasons[0]


def test_impossible_times_are_no_speedup(referee):
    evaluation = referee.evaluate(EvaluationRequest(DEFINITION, [WORKLOAD], solution(RIGHT), sol_s=10.0))
    assert evaluation.evidence is Evidence.SUSPICIOUS
    assert "speed of light" in evaluation.reasons[0]


def test_an_answer_that_depends_on_the_number_of_calls_is_found(referee):
    counted = model(
        "count.append(1)\nreturn self.right(x) if len(count) < 140 else torch.zeros_like(x)", "count = []"
    )
    evaluation = comparator(referee, counted, Level.FULL)
    assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL, evaluation.reasons
    # On a busy machine a second of endurance has fewer than 140 calls; then a timed call is wrong.
    assert "many calls" in evaluation.reasons[0] or "timed call" in evaluation.reasons[0]


@pytest.mark.slow
def test_level_smoke_compares_one_call_and_times_none(referee):
    right = comparator(referee, RIGHT, Level.SMOKE)
    assert right.passed
    assert right.performance is None
    assert [s.name for s in right.stages if s.name not in ("open", "end")] == [
        "build", "baselines", "start", "smoke",
    ]  # fmt: skip
    wrong = comparator(
        referee, model("out = self.right(x).clone(); out[:, 90:] = 0; return out"), Level.SMOKE
    )
    assert wrong.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert wrong.correctness is not None
    assert any(
        "dimension 1 (size 96): indices 90 to 95 (the last 6)" in s for s in wrong.correctness.mismatch
    )


@pytest.mark.slow
def test_full_level_can_verify(tmp_path):
    settings = RefereeSettings(threads=1, compile_baseline=False, full_blocks=6, full_seconds=1.0)
    with Referee(settings, device=DEVICE, cache=tmp_path) as referee:
        evaluation = comparator(referee, RIGHT, Level.FULL)
    assert evaluation.passed, evaluation.reasons
    assert evaluation.evidence is not Evidence.SUSPICIOUS
    assert evaluation.performance is not None
    assert 3 <= evaluation.performance.processes <= 5  # two more if three decide nothing
