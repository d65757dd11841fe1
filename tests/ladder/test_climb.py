"""The ladder on a machine without a GPU: rungs are real processes that work, fail, crash or hang."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from agentforge.devices import MEANING, Fallback
from agentforge.ladder import LADDER, Ladder, Rung, RungOutcome, RungResult, climb
from agentforge.ladder.climb import rung_command

_WORKS = f"echo noise; echo '{json.dumps({'ok': True, 'detail': 'as it should'})}'"
_FAILS = json.dumps({"ok": False, "detail": "ERR_NVGPUCTRPERM", "fix": "ask the administrator"})
FAULTS = {
    "says so": (f"echo '{_FAILS}'", "ERR_NVGPUCTRPERM"),
    "crashes": ("kill -SEGV $$", "killed by SIGSEGV"),
    "leaves": ("echo Xid 79 >&2; exit 3", "exit code 3: Xid 79"),
    "says nonsense": ("echo '[1]'", "exit code 0: it said nothing"),
    "hangs and ignores signals": ("trap '' TERM INT; sleep 60 & wait", "no answer within"),
}


def _faulty(faults: dict[str, str]) -> Callable[[Rung], Sequence[str]]:
    return lambda rung: ["sh", "-c", faults.get(rung.name, _WORKS)]


def _climbed(faults: dict[str, str]) -> Ladder:
    return climb(command=_faulty(faults))


def test_a_machine_that_can_everything_does_without_nothing() -> None:
    seen: list[RungResult] = []
    ladder = climb(command=_faulty({}), on_rung=seen.append)
    assert [r.rung for r in seen] == [r.name for r in LADDER]
    assert {r.outcome for r in ladder.rungs} == {RungOutcome.WORKS}
    assert ladder.fallbacks == ()
    assert ladder.broken is None


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_any_kind_costs_one_rung(fault: str) -> None:
    program, said = FAULTS[fault]
    begin = time.monotonic()
    rungs = [replace(r, limit_s=1.0) if r.name == "counters" and "hangs" in fault else r for r in LADDER]
    ladder = climb(rungs=rungs, command=_faulty({"counters": program}))
    assert time.monotonic() - begin < 20
    found = next(r for r in ladder.rungs if r.rung == "counters")
    assert found.outcome is RungOutcome.FAILS
    assert said in found.detail
    assert ladder.fallbacks == (Fallback.NO_COUNTERS,)
    assert ladder.broken is None


def test_rungs_that_do_not_need_each_other_are_tried_side_by_side(tmp_path: Path) -> None:
    def meet(rung: Rung) -> Sequence[str]:
        other = tmp_path / ("b" if rung.name == "a" else "a")
        wait = f"touch {tmp_path / rung.name}; while [ ! -e {other} ]; do sleep 0.02; done; {_WORKS}"
        return ["sh", "-c", wait]

    ladder = climb(rungs=[Rung("a", "", "", limit_s=20), Rung("b", "", "", limit_s=20)], command=meet)
    assert [r.outcome for r in ladder.rungs] == [RungOutcome.WORKS] * 2


def test_beside_a_rung_that_is_alone_no_other_is_tried(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def note(rung: Rung) -> Sequence[str]:
        return ["sh", "-c", f"echo {rung.name} >> {log}; sleep 0.2; echo {rung.name} >> {log}; {_WORKS}"]

    rungs = [Rung("a", "", ""), Rung("b", "", "", alone=True), Rung("c", "", "", needs=("a",))]
    assert climb(rungs=rungs, command=note).rungs[2].outcome is RungOutcome.WORKS
    assert log.read_text().split() == ["a", "a", "b", "b", "c", "c"]


def test_an_interrupt_ends_what_is_tried(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    programs = {
        "long": f"echo $$ > {place}; sleep 60",
        "short": f"while [ ! -s {place} ]; do sleep 0.02; done",
    }

    def interrupt(_: RungResult) -> None:
        raise KeyboardInterrupt

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        climb(
            rungs=[Rung("short", "", ""), Rung("long", "", "")], on_rung=interrupt,
            command=lambda rung: ["sh", "-c", programs[rung.name]],
        )  # fmt: skip
    assert time.monotonic() - begin < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int(place.read_text()), 0)


def test_an_interrupt_ends_what_is_just_started() -> None:
    interrupted = Event()

    def interrupt(_: RungResult) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    def late(rung: Rung) -> Sequence[str]:
        if rung.name == "late":
            interrupted.wait()
            time.sleep(0.5)  # until the others have been killed
            return ["sleep", "30"]
        return ["sh", "-c", _WORKS]

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        climb(rungs=[Rung("first", "", ""), Rung("late", "", "")], on_rung=interrupt, command=late)
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("rung", [r for r in LADDER if r.fallback], ids=lambda r: r.name)
def test_each_rung_has_its_own_fallback(rung: Rung) -> None:
    ladder = _climbed({rung.name: "exit 1"})
    assert ladder.fallbacks == (rung.fallback,)
    assert ladder.broken is None
    assert rung.fallback is not None
    assert MEANING[rung.fallback]


@pytest.mark.parametrize("name", [r.name for r in LADDER if r.fallback is None])
def test_without_an_essential_rung_nothing_is_judged(name: str) -> None:
    ladder = _climbed({name: f"echo '{_FAILS}'"})
    assert ladder.broken is not None
    assert ladder.broken.rung == name
    assert ladder.broken.fix == "ask the administrator"
    after = [
        r for r, result in zip(LADDER, ladder.rungs, strict=True) if result.outcome is RungOutcome.NOT_TRIED
    ]
    assert after
    assert all(any(need == name or need in {r.name for r in after} for need in r.needs) for r in after)


def test_without_a_language_nothing_is_judged() -> None:
    ladder = _climbed({"nvrtc": "exit 1", "triton": "exit 1", "cupy": "exit 1"})
    assert ladder.broken is not None
    assert ladder.broken.rung == "triton"


def test_rungs_need_only_earlier_ones() -> None:
    for number, rung in enumerate(LADDER):
        assert set(rung.needs) <= {r.name for r in LADDER[:number]}


def test_the_real_first_rung_answers() -> None:
    driver = LADDER[0]
    ladder = climb(rungs=[driver], command=rung_command)
    expected = RungOutcome.WORKS if Path("/dev/nvidiactl").exists() else RungOutcome.FAILS
    assert ladder.rungs[0].outcome is expected, ladder.rungs[0].detail
    assert "Traceback" not in ladder.rungs[0].detail
    assert ladder.rungs[0].detail


@pytest.mark.parametrize("rung", LADDER, ids=lambda r: r.name)
def test_each_program_exists(rung: Rung) -> None:
    from importlib import import_module

    module, _, name = rung.program.partition(":")
    assert callable(getattr(import_module(f"agentforge.ladder.rungs.{module}"), name))
