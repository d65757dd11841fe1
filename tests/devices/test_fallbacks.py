"""What a device does without is remembered, reaches the referee, and is named in its verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.config import RefereeSettings, Settings
from agentforge.devices import MEANING, DeviceSpec, Fallback, detect, with_fallbacks
from agentforge.devices.fallbacks import known, remember
from agentforge.referee import Referee
from agentforge.referee.workers.device_backend import backend_for
from agentforge.runs.run_settings import for_device

from ..referee.judging import judge, problem

GPU = DeviceSpec(kind="cuda", name="some GPU", architecture="sm_90", toolchain={"cuda": "13.0"})


def test_it_is_remembered_by_device_and_toolchain(tmp_path: Path) -> None:
    assert not known(GPU, tmp_path)
    assert with_fallbacks(GPU, tmp_path) == GPU
    remember(GPU, tmp_path, [Fallback.NO_GRAPHS, Fallback.NO_GRAPHS])
    assert with_fallbacks(GPU, tmp_path).fallbacks == ("no-graphs",)
    newer = GPU.model_copy(update={"toolchain": {"cuda": "13.1"}})
    assert not known(newer, tmp_path)
    assert known(detect("cpu"), tmp_path)


def test_a_damaged_file_is_as_none(tmp_path: Path) -> None:
    remember(GPU, tmp_path, [])
    (file,) = tmp_path.iterdir()
    for text in ("", "{", "{}", '["of a newer version", 3]'):
        file.write_text(text)
        assert with_fallbacks(GPU, tmp_path).fallbacks == ()


def test_every_fallback_has_words() -> None:
    assert set(MEANING) == set(Fallback)


def test_the_backend_does_without() -> None:
    plain = backend_for(GPU)
    poor = backend_for(GPU.model_copy(update={"fallbacks": tuple(Fallback)}))
    assert "cuda-graph" in plain.baselines
    assert set(poor.baselines) == {"compile", "max-autotune"}
    assert plain.filtered and plain.memory_limited and plain.events
    assert not (poor.filtered or poor.memory_limited or poor.events)
    assert poor.device_clock  # without events the worker's own clock counts, which leaves out the upload


def test_a_gpu_without_triton_gets_cuda_kernels() -> None:
    assert for_device(Settings(), GPU).search.language == "triton"
    poor = GPU.model_copy(update={"fallbacks": ("no-triton",)})
    assert for_device(Settings(), poor).search.language == "cuda"


@pytest.mark.slow
def test_a_verdict_says_what_it_does_without(tmp_path: Path) -> None:
    null = detect("null")
    remember(null, tmp_path, Fallback)
    settings = RefereeSettings(
        threads=1, compile_baseline=False, quick_blocks=2, quick_seconds=0.1, random_seeds=1, task_seconds=0
    )
    definition = problem("return torch.relu(x)", "torch.randn(40, 24)")
    with Referee(settings, device=null, cache=tmp_path) as referee:
        verdict = judge(referee, definition)
    assert verdict.passed, verdict.reasons
    assert verdict.environment.sandbox == "rlimits"
    assert MEANING[Fallback.HOST_CLOCK] in verdict.environment.notes["without"]
