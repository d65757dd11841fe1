"""A generation by a live language model, from the API to its tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import agentforge
from agentforge.config import Settings
from agentforge.schema import UsageError

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


def test_bad_requests_are_refused_before_any_work(settings: Settings) -> None:
    with pytest.raises(UsageError, match=r"call model\.eval\(\) first"):
        agentforge.profile(language_model(), generate="prompt=6,new=4", settings=settings)
    with pytest.raises(UsageError, match="goes with a causal language model of transformers, not Linear"):
        agentforge.profile(torch.nn.Linear(2, 2), generate="prompt=6,new=4", settings=settings)
    with pytest.raises(UsageError, match="leave out the example inputs"):
        agentforge.profile(torch.nn.Linear(2, 2), torch.ones(2), generate="prompt=6,new=4", settings=settings)
