from __future__ import annotations

from typing import Any

import pytest
import torch

from agentforge.frontends import FrontendOptions, load_target
from agentforge.frontends._load import define
from agentforge.frontends.generation import Lengths, check_generation, parse_lengths
from agentforge.frontends.huggingface import generating_source
from agentforge.problems.kernelbench import Problem, load_problem
from agentforge.schema import TargetError, UsageError, Workload

pytest.importorskip("transformers")

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
    "max_position_embeddings": 32,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **SMALL},
    "qwen2": {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **SMALL},
    "sliding_window": {
        "model_type": "mistral",
        "architectures": ["MistralForCausalLM"],
        **SMALL,
        "sliding_window": 4,
    },
    "experts": {
        "model_type": "mixtral",
        "architectures": ["MixtralForCausalLM"],
        **SMALL,
        "num_local_experts": 2,
    },
    "gpt2": {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 32,
        "vocab_size": 100,
    },
}
OPTIONS = FrontendOptions(generate="prompt=6,new=4")


def made(config: dict[str, Any]) -> tuple[Problem, tuple[Workload, ...]]:
    source, workloads, _ = generating_source(config, OPTIONS)
    definition = define("tiny", "hf:tiny.json", source)
    check_generation(definition, 6, "cpu")
    return load_problem(definition), workloads


def test_lengths_are_two_positive_numbers() -> None:
    assert parse_lengths("prompt=128, new=64") == Lengths(128, 64)
    for text in ("prompt=0,new=4", "prompt=4", "new=4,prompt=4", "128", "prompt=4,new=-1", "prompt=4,new=1"):
        with pytest.raises(UsageError, match=r"--generate .* does not read; write prompt=128,new=64"):
            parse_lengths(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_tokens_are_those_of_the_original_with_its_own_cache(name: str) -> None:
    problem, workloads = made(CONFIGS[name])
    assert [(w.name, w.weight, w.tokens) for w in workloads] == [("prefill", 1, 6), ("decode", 3, 1)]
    model = problem.build(0)
    tokens = torch.randint(0, 100, (1, 6))
    expected = tokens
    with torch.no_grad():
        for _ in range(4):
            logits = problem.module.Base.forward(model, input_ids=expected, use_cache=False).logits
            expected = torch.cat([expected, logits[:, -1].argmax(-1, keepdim=True)], 1)
    assert torch.equal(model.generate(tokens, 4), expected)
    for specified, example in zip(workloads, problem.module.EXAMPLES, strict=True):
        drawn = example()
        assert [(tuple(t.shape), str(t.dtype)) for t in drawn] == [
            (i.shape, f"torch.{i.dtype.value}") for i in specified.inputs
        ]
    with pytest.raises(ValueError, match="room for 10 tokens"):
        model.generate(tokens, 5)


def test_rotary_frequencies_keep_the_dtype_that_a_loaded_model_has() -> None:
    options = FrontendOptions(generate="prompt=6,new=4", dtype="bfloat16")
    source, _, _ = generating_source(CONFIGS["llama"], options)
    definition = define("tiny", "hf:tiny.json", source)
    check_generation(definition, 6, "cpu")
    problem = load_problem(definition)
    loaded = problem.module.Base._from_config(problem.module._configuration(), dtype=torch.bfloat16)
    assert dtypes(problem.build(0)) == dtypes(loaded)
    assert loaded.model.rotary_emb.inv_freq.dtype is torch.float32
    assert torch.equal(problem.build(0).model.rotary_emb.inv_freq, loaded.model.rotary_emb.inv_freq)


def test_memory_that_runs_out_is_not_blamed_on_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    source, _, _ = generating_source(CONFIGS["llama"], OPTIONS)
    monkeypatch.setattr(Problem, "build", lambda *_: torch.empty(1 << 44))
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        check_generation(define("tiny", "hf:tiny.json", source), 6, "cpu")


def test_a_live_model_says_the_dtypes_of_its_tensors() -> None:
    live = (("model.norm.weight", "float32"),)
    options = FrontendOptions(generate="prompt=6,new=4", dtype="bfloat16", tensor_dtypes=live)
    source, _, _ = generating_source(CONFIGS["llama"], options)
    built = dtypes(load_problem(define("tiny", "hf:tiny.json", source)).build(0))
    assert built.pop("model.norm.weight") is torch.float32
    assert set(built.values()) == {torch.bfloat16}


def dtypes(model: torch.nn.Module) -> dict[str, torch.dtype]:
    return {name: t.dtype for name, t in (*model.named_parameters(), *model.named_buffers())}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"], **SMALL}, "no causal language model"),
        ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, "no causal language model"),
        (
            {"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 1, "vocab_size": 100},
            "no causal language model",
        ),
        (
            {
                "model_type": "mamba",
                "architectures": ["MambaForCausalLM"],
                "hidden_size": 32,
                "num_hidden_layers": 1,
                "vocab_size": 100,
            },
            "does not generate with a static cache",
        ),
    ],
)
def test_a_model_without_a_cache_is_refused(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(TargetError, match=f"{reason}; leave out --generate"):
        generating_source(config, OPTIONS)


def test_more_tokens_than_positions_are_refused() -> None:
    with pytest.raises(UsageError, match="needs 34 positions, and the model has 32"):
        generating_source(CONFIGS["llama"], FrontendOptions(generate="prompt=30,new=4"))


def test_only_a_configuration_can_generate() -> None:
    with pytest.raises(UsageError, match=r"--generate goes with hf:CONFIG\.json"):
        load_target("model.py", OPTIONS)
