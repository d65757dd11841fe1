"""What a run does otherwise on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentforge.ladder.device as ladder
from agentforge.config import SearchSettings, Settings
from agentforge.devices import DeviceSpec
from agentforge.ladder import LADDER, Ladder, RungOutcome, RungResult
from agentforge.ladder.climb import OnRung
from agentforge.runs import TargetStart, resume, start_run
from agentforge.runs.run_settings import for_device
from agentforge.schema import Event, MachineError, Progress, RunSettings
from agentforge.store import Store
from tests.loop.conftest import make_run
from tests.store import nouns

GPU = DeviceSpec(kind="cuda", name="a GPU", architecture="sm_90")
HOST = DeviceSpec(kind="cpu", name="a CPU", architecture="x86-64")


def test_kernels_for_a_gpu_are_triton_unless_the_user_says_otherwise() -> None:
    assert for_device(Settings(), HOST).search.language == "cpp"
    assert for_device(Settings(), GPU).search.language == "triton"
    chosen = Settings(search=SearchSettings(language="cuda"))
    assert for_device(chosen, GPU).search.language == "cuda"


@pytest.fixture
def broken_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU whose ladder ends at its first rung."""

    def climb(*, on_rung: OnRung) -> Ladder:
        result = RungResult(rung=LADDER[0].name, outcome=RungOutcome.FAILS)
        on_rung(result)
        return Ladder(rungs=(result,))

    monkeypatch.setattr(ladder, "detect", lambda kind: GPU)
    monkeypatch.setattr(ladder, "climb", climb)


@pytest.mark.usefixtures("broken_gpu")
def test_who_starts_or_resumes_a_run_hears_what_a_gpus_first_use_tries(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    events: list[Event] = []
    with pytest.raises(MachineError, match="this GPU cannot be used"):
        start_run(TargetStart(nouns.target), settings, device="cuda", on_event=events.append)
    with Store(settings.url) as store:
        target = store.save_target(nouns.target())
        run = make_run().model_copy(update={"target": target})
        store.create_run(run, [RunSettings(device="cuda")])
    with pytest.raises(MachineError, match="this GPU cannot be used"):
        resume(run.id, settings, on_event=events.append)
    told = [event.text for event in events if isinstance(event, Progress)]
    assert told == [f"first use of this GPU: {LADDER[0].name} fails"] * 2
    with pytest.raises(MachineError, match="this GPU cannot be used"):
        resume(run.id, settings)
