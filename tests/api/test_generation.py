"""A generation by a live language model, from the API to its tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import agentforge
from agentforge.api.metric import permission_for
from agentforge.api.targets import as_target
from agentforge.config import Settings
from agentforge.problems.kernelbench import load_problem
from agentforge.schema import MachineError, TargetError, UsageError

transformers = pytest.importorskip("transformers")


def language_model() -> torch.nn.Module:
    config = transformers.LlamaConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        vocab_size=100,
    )
    model: torch.nn.Module = transformers.LlamaForCausalLM(config)
    return model


@pytest.mark.slow
def test_a_live_language_model_generates_the_same_tokens(settings: Settings, tmp_path: Path) -> None:
    model = language_model().eval()
    result = agentforge.optimize(
        model,
        generate="prompt=6,new=4",
        settings=settings,
        attempts=0,  # tests/stitch/test_generation.py has kernels in it
        out=tmp_path / "fast",
        progress=False,
    )
    assert result.finished
    fast = result.model
    assert type(model) is transformers.LlamaForCausalLM
    assert isinstance(fast, transformers.LlamaForCausalLM)
    assert fast.lm_head.weight is model.lm_head.weight
    tokens = torch.arange(6)[None]
    expected = model.generate(tokens, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    assert torch.equal(fast.generate(tokens, max_new_tokens=4), expected)
    rates = result.report.tokens_per_second
    assert set(rates) == {"prefill", "decode"}
    assert all(found[name] > 0 for found in rates.values() for name in ("artifact", "eager"))
    assert "decode, tokens per second: " in repr(result)
    assert "| tokens per second | prefill | decode |" in (tmp_path / "fast" / "report.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("cast", [True, False])
def test_the_target_has_the_dtypes_of_the_live_model(cast: bool, settings: Settings) -> None:
    config = language_model().config
    model = transformers.LlamaForCausalLM._from_config(config, dtype=torch.bfloat16).eval()
    model = model.to(torch.bfloat16) if cast else model
    target = as_target(model, None, "cpu", settings, generate="prompt=6,new=4")
    twin = load_problem(target.definition).build(0)
    for found, given in ((twin.named_parameters, model.parameters), (twin.named_buffers, model.buffers)):
        assert [t.dtype for _, t in found()] == [t.dtype for t in given()]
    assert twin.model.rotary_emb.inv_freq.dtype is (torch.bfloat16 if cast else torch.float32)


@pytest.mark.slow  # tests/frontends/test_kernelbench.py has the fast one
def test_a_model_that_returns_its_cache_is_refused_before_a_search(settings: Settings) -> None:
    model, tokens = language_model().eval(), torch.arange(6)[None]
    with pytest.raises(TargetError, match=r"values'\] is DynamicCache.*use_cache = False, or .* gen"):
        as_target(model, {"input_ids": tokens}, "cpu", settings)
    model.config.use_cache = False
    assert as_target(model, {"input_ids": tokens}, "cpu", settings).workloads


def test_a_home_folder_that_cannot_be_written_is_a_sentence(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    unusable = settings.model_copy(update={"home": tmp_path / "file" / "home"})
    with pytest.raises(
        MachineError, match=r"the model's config cannot be kept in .*: .* set AGENTFORGE_HOME"
    ):
        as_target(language_model().eval(), None, "cpu", unusable, generate="prompt=6,new=4")
    with pytest.raises(MachineError, match=r"the metric cannot be kept in .*: .* set AGENTFORGE_HOME"):
        permission_for("bf16", lambda model: 1.0, 0.1, unusable)


def test_bad_requests_are_refused_before_any_work(settings: Settings) -> None:
    with pytest.raises(UsageError, match=r"call model\.eval\(\) first"):
        agentforge.profile(language_model(), generate="prompt=6,new=4", settings=settings)
    with pytest.raises(UsageError, match="goes with a causal language model of transformers, not Linear"):
        agentforge.profile(torch.nn.Linear(2, 2), generate="prompt=6,new=4", settings=settings)
    with pytest.raises(UsageError, match="leave out the example inputs"):
        agentforge.profile(torch.nn.Linear(2, 2), torch.ones(2), generate="prompt=6,new=4", settings=settings)
