"""A model with two captured calls: the prefill and the decode step of a generation."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import torch

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec, Roofline
from agentforge.frontends import FrontendOptions
from agentforge.frontends._load import define
from agentforge.frontends.huggingface import generating_source
from agentforge.profiling import profile_target
from agentforge.referee import Referee
from agentforge.schema import Target
from agentforge.stitch import stitch
from tests.steady import SteadyReferee

from .making import from_reference, stitch_in_process

pytest.importorskip("transformers")

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
}


@pytest.fixture(scope="module")
def target() -> Target:
    source, workloads, _ = generating_source(CONFIG, FrontendOptions(generate="prompt=6,new=4"))
    return Target(
        name="tiny", origin="hf:tiny.json", definition=define("tiny", "", source), workloads=workloads
    )


@pytest.mark.slow
def test_each_call_has_its_kernels_and_the_cache_is_written(target: Target, tmp_path: Path) -> None:
    stitched = stitch_in_process(target, tmp_path / "fast")
    assert [plan["unit"] for plan in stitched.plans] == ["@prefill", "@decode"]
    original = stitched.problem.build(0)
    fast = stitched.package.optimize(copy.deepcopy(original))
    runs = []
    with torch.inference_mode():
        for example in stitched.problem.module.EXAMPLES:
            ours = example()
            theirs = copy.deepcopy(ours)
            torch.testing.assert_close(fast(*ours), original(*theirs))
            torch.testing.assert_close(ours, theirs)
            runs.append(sum(stitched.package.calls().values()))
    assert 0 < runs[0] < runs[1]
    assert torch.equal(fast.generate(torch.arange(6)[None], 4), original.generate(torch.arange(6)[None], 4))


@pytest.mark.slow
def test_a_prompt_of_another_length_runs_the_original_and_its_steps_the_kernels(
    target: Target, tmp_path: Path
) -> None:
    stitched = stitch_in_process(target, tmp_path / "fast")
    original = stitched.problem.build(0)
    fast = stitched.package.optimize(copy.deepcopy(original))
    tokens = torch.arange(5)[None]
    assert torch.equal(fast.generate(tokens, 1), original.generate(tokens, 1))
    assert sum(stitched.package.calls().values()) == 0
    assert torch.equal(fast.generate(tokens, 5), original.generate(tokens, 5))
    assert sum(stitched.package.calls().values()) > 0


@pytest.mark.slow
def test_copies_keep_the_kernels_and_restore_removes_them(target: Target, tmp_path: Path) -> None:
    stitched = stitch_in_process(target, tmp_path / "fast")
    original = stitched.problem.build(0)
    fast = stitched.package.optimize(copy.deepcopy(original))
    assert stitched.package.optimize(fast) is fast
    assert type(copy.deepcopy(fast)) is type(fast)
    assert fast.__reduce_ex__(pickle.DEFAULT_PROTOCOL)[1][0] is type(original)
    assert type(stitched.package.restore(fast)) is type(original)


@pytest.mark.slow
def test_the_referee_sees_the_kernels_of_both_calls_run(target: Target, tmp_path: Path) -> None:
    device = DeviceSpec(kind="cpu", name="test", architecture="x86-64", threads=2)
    profile = profile_target(target, device, Roofline(bandwidth=2e10, peak_flops={"float32": 1e11}), traces=2)
    assert set(profile.tokens_per_second) == {"prefill", "decode"}
    decode = {s.calls for b in profile.bottlenecks for s in b.call_sites if s.unit == "@decode"}
    assert decode == {3}
    norms = [b.definition for b in profile.bottlenecks if b.definition.op_type == "norm"]
    settings = RefereeSettings(
        threads=2, quick_seconds=0.2, quick_blocks=2, compile_baseline=False, task_seconds=0
    )
    with Referee(settings, device=device, cache=tmp_path / "cache") as referee:
        artifact = stitch(
            target,
            profile,
            {d.hash: from_reference(d) for d in norms},
            tmp_path / "fast",
            referee=SteadyReferee(referee, lambda _: 2.0),
            device=device,
            cache=tmp_path / "cache",
        )
    assert artifact.proven, artifact.report["trials"]
    assert artifact.mode == "kernels"
    used = artifact.report["kernels"]
    assert used
    assert all(kernel["runs_seen"] == kernel["runs_expected"] > 0 for kernel in used)
    rates = artifact.report["tokens_per_second"]
    assert {step: set(found) for step, found in rates.items()} == {
        "prefill": {"eager", "artifact"},
        "decode": {"eager", "artifact"},
    }
