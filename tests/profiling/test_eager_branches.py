"""The captured graph of a transformers model is the program that eager runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Node

from agentforge.frontends import FrontendOptions
from agentforge.frontends._load import define
from agentforge.frontends.huggingface import generating_source
from agentforge.problems.kernelbench import load_problem
from agentforge.profiling.eager_branches import eager_branches
from agentforge.profiling.graph.capture import CapturedUnit
from agentforge.profiling.graph.operators import Kind, argument, kind_of, op_name
from agentforge.profiling.measure.operators import only_in_graphs
from tests.profiling.captured import capture_units

transformers = pytest.importorskip("transformers")
pytest.importorskip("transformers.masking_utils")

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
}
TOKENS = 8


def llama() -> torch.nn.Module:
    torch.manual_seed(0)
    model: torch.nn.Module = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)).eval()
    return model


def tokens() -> torch.Tensor:
    return torch.randint(0, 100, (2, TOKENS))


def attentions(unit: CapturedUnit) -> list[Node]:
    return [n for n in unit.graph_module.graph.nodes if kind_of(n) is Kind.ATTENTION]


def names(unit: CapturedUnit) -> set[str]:
    return {op_name(n) for n in unit.graph_module.graph.nodes}


def heads(node: Node) -> int:
    return int(argument(node, "key").meta["val"].shape[1])


def test_a_prefill_has_no_mask_and_reads_each_key_once() -> None:
    model, call = llama(), {"input_ids": tokens(), "use_cache": False}
    (unit,) = capture_units(model, (), call).units
    (attention,) = attentions(unit)
    assert argument(attention, "attn_mask") is None
    assert argument(attention, "is_causal") is True
    assert heads(attention) == 2
    assert not names(unit) & {"cumsum", "diff", "le"}
    with torch.no_grad():
        assert torch.equal(unit.graph_module(**call).logits, model(**call).logits)
    assert only_in_graphs(model, [unit], lambda: None) == []


def test_an_encoder_has_no_mask() -> None:
    sizes = {name: value for name, value in SMALL.items() if name != "num_key_value_heads"}
    model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes)).eval()
    (unit,) = capture_units(model, (tokens(),), {}).units
    assert [argument(n, "attn_mask") for n in attentions(unit)] == [None]


@pytest.mark.slow
def test_a_decode_step_reads_the_cache_as_it_is() -> None:
    source, _, _ = generating_source(
        {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **SMALL},
        FrontendOptions(generate="prompt=6,new=4"),
    )
    problem = load_problem(define("tiny", "hf:tiny.json", source))
    for inputs in problem.module.EXAMPLES:
        model = problem.build(0)
        (unit,) = capture_units(model, tuple(inputs()), {}).units
        assert only_in_graphs(model, [unit], lambda: None) == []
    assert [heads(n) for n in attentions(unit)] == [2]


class Renames(torch.nn.Module):
    """A model of the user that gives positions to one of transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = llama()

    def forward(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.inner(input_ids=ids, position_ids=at, use_cache=False).logits
        return logits


def test_several_sequences_in_a_row_are_kept_apart_if_a_call_may_have_them() -> None:
    model, ids = Renames().eval(), tokens()
    (unit,) = capture_units(model, (ids, torch.arange(TOKENS).repeat(2, 1)), {}).units
    packed = torch.arange(TOKENS // 2).repeat(2, 2)
    with torch.no_grad():
        torch.testing.assert_close(unit.graph_module(ids, packed), model(ids, packed))


def test_a_mask_among_the_arguments_is_read() -> None:
    model, ids = llama(), tokens()
    (unit,) = capture_units(model, (ids,), {"attention_mask": torch.ones_like(ids), "use_cache": False}).units
    padded = {"attention_mask": (torch.arange(TOKENS) > 2).long().repeat(2, 1), "use_cache": False}
    with torch.no_grad():
        torch.testing.assert_close(unit.graph_module(ids, **padded).logits, model(ids, **padded).logits)


@pytest.mark.slow
@pytest.mark.parametrize(("window", "depends"), [(None, False), (16, True)])
def test_branches_on_sizes_are_seen_with_any_size(window: int | None, depends: bool) -> None:
    config = transformers.MistralConfig(**SMALL, sliding_window=window)
    model = transformers.MistralForCausalLM(config).eval()
    many = torch.export.Dim("many", min=2, max=64)
    shapes = {"input_ids": {1: many}, "use_cache": None}
    with torch.no_grad(), eager_branches():
        try:
            torch.export.export(
                model, (), {"input_ids": tokens(), "use_cache": False}, dynamic_shapes=shapes, strict=False
            )
            found = False
        except Exception:
            found = True
    assert found is depends


def test_functions_of_transformers_come_back() -> None:
    masks = transformers.masking_utils
    before = dict(vars(masks))
    with eager_branches():
        assert vars(masks) != before
    assert vars(masks) == before


@pytest.mark.parametrize("mask_check", [True, False])
def test_padding_that_eager_may_leave_out_is_not_captured(mask_check: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1, mask_check=mask_check).eval()
    before = torch.nn.TransformerEncoder.forward
    x, last = torch.randn(2, 4, 8), [False, mask_check, not mask_check, not mask_check]  # else a hole
    captured = capture_units(encoder, (x,), {"src_key_padding_mask": torch.tensor([[False] * 4, last])})
    assert captured.whole is None
    if mask_check:
        assert "depend on a tensor's values" in captured.notes[0]
        assert [unit.path for unit in captured.units] == ["layers.0"]
    assert torch.nn.TransformerEncoder.forward is before


def test_an_encoder_that_leaves_no_padding_out_is_captured() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1).eval()
    x, padding = torch.randn(2, 4, 8), torch.tensor([[False, False, False, True], [False] * 4])
    plain = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
    for model, given in ((encoder, {}), (plain, {"src_key_padding_mask": padding})):
        (unit,) = capture_units(model, (x,), given).units
        assert unit.path == ""
        with torch.no_grad():
            torch.testing.assert_close(unit.graph_module(x, **given), model(x, **given))
