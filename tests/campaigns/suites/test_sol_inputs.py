"""What SOL-ExecBench's names say of random inputs, each by a property of the values."""

from __future__ import annotations

from typing import Any

import pytest

from agentforge.campaigns.suites._sol_inputs import named_input
from agentforge.schema import DType

ALL_ONES = "(v == 1).all()"
ALL_ZEROS = "(v == 0).all()"
CAUSAL = "(v.tril() == 0).all() and (v[..., 0, 1:] == torch.finfo(v.dtype).min).all()"
EITHER = "set(v.unique().tolist()) == {0.0, 1.0}"
WAVE = "v.abs().max() <= 1"
POSITIVE = "v.min() >= 0.1"
SHARES = "v.min() >= 0 and torch.allclose(v.sum(-1), torch.ones(()))"
SMALL = "abs(v.std() - 64 ** -0.5) < 0.02"


def values(name: str, description: str = "", shape: tuple[int, ...] = (32, 64)) -> Any:
    """For a seed; None if the name says nothing."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    text = named_input(name, description, DType.FLOAT32, shape)
    return eval(text, {"_torch": torch}) if text else None


@pytest.mark.parametrize(
    ("property_", "names"),
    [
        (ALL_ONES, "norm_weight input_layernorm_weight q_norm2_weight rmsnorm_weight"),
        (ALL_ZEROS, "norm_bias layernorm_bias k_norm1_bias"),
        (EITHER, "x_mask text_mask attention_mask"),
        (WAVE, "cos sin cos_cached rope_sin"),
        (POSITIVE, "rstd std var variance batch_var row_std2 variance1"),
        ("-1 <= v.min() and v.max() < 0", "A"),
        ("-5 <= v.min() and v.max() <= -1", "A_log"),
        ("v.max() <= 0 and (v.diff() <= 0).all()", "A_cumsum"),
        ("-5 <= v.min() and -1 < v.max() <= 0", "g"),
        (SHARES, "attn_weights attention_weights routing_weights"),
        (SMALL, "weight weight2 up_weight down_proj gate_projs w_weight_matrix q_proj3"),
    ],
)
def test_a_name_says_what_the_values_are(property_: str, names: str) -> None:
    torch = pytest.importorskip("torch")
    for name in names.split():
        assert eval(property_, {"v": values(name), "torch": torch}), name


@pytest.mark.parametrize(
    ("property_", "name", "description"),
    [
        (CAUSAL, "attention_mask", ""),
        (CAUSAL, "causal_mask", ""),
        (CAUSAL, "bias", "Attention mask of the causal kind"),
        (EITHER, "token_mask", "1.0 for valid"),
        (EITHER, "token_mask", "Binary"),
        (SHARES, "scores", "Output of the softmax"),
    ],
)
def test_a_description_does_too(property_: str, name: str, description: str) -> None:
    torch = pytest.importorskip("torch")
    assert eval(property_, {"v": values(name, description, (2, 64, 64)), "torch": torch})


@pytest.mark.parametrize(
    ("name", "description", "shape"),
    [
        ("x", "", (4, 4)),
        ("weight", "", (4,)),
        ("bias", "", (4,)),
        ("token_mask", "", (4, 4)),
        ("causal_mask", "", (4, 3)),
        ("x_variance1", "", (4,)),
        ("a", "the weight: of a norm_weight", (4,)),
        ("scores", "before the softmax", (4, 4)),
    ],
)
def test_other_names_say_nothing(name: str, description: str, shape: tuple[int, ...]) -> None:
    assert named_input(name, description, DType.FLOAT32, shape) == ""


@pytest.mark.parametrize("name", ["weight", "A_cumsum", "attn_weights", "std", "norm_weight"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_empty_shapes_are_drawn_too(name: str, shape: tuple[int, ...]) -> None:
    found = values(name, "", shape)
    assert found is None or tuple(found.shape) == shape
