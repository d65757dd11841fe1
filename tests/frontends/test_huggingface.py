from __future__ import annotations

import json

import pytest

from agentforge.frontends import FrontendOptions, load_target
from agentforge.frontends.huggingface import HuggingFace
from agentforge.harness.convention import load_problem
from agentforge.schema import TargetError, UsageError
from agentforge.testing.frontend import FrontendContract

pytest.importorskip("transformers")

SMALL = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
TEXT = {**SMALL, "vocab_size": 100}
CONFIGS = {
    "causal": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **TEXT},
    "encoder": {"model_type": "bert", **TEXT},
    "masked": {"model_type": "bert", "architectures": ["BertForMaskedLM"], **TEXT},
    "classifier": {
        "model_type": "distilbert",
        "architectures": ["DistilBertForSequenceClassification"],
        "vocab_size": 100,
        "dim": 32,
        "n_layers": 1,
        "n_heads": 4,
        "hidden_dim": 64,
    },
    "vision": {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification"],
        "image_size": 16,
        "patch_size": 8,
        "num_channels": 3,
        **SMALL,
    },
}


def write(folder, name):
    path = folder / f"{name}.json"
    path.write_text(json.dumps(CONFIGS[name]))
    return f"hf:{path}"


@pytest.mark.slow
class TestContract(FrontendContract):
    def make(self):
        return HuggingFace()

    def good(self, folder):
        return write(folder, "causal"), FrontendOptions(input_shapes=("1,8",))

    def missing(self, folder):
        return f"hf:{folder / 'nowhere.json'}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape", "output"),
    [
        ("causal", "2,8", (2, 8, 100)),
        ("encoder", "2,8", (2, 8, 32)),
        ("masked", "2,8", (2, 8, 100)),
        ("classifier", "2,8", (2, 2)),
        ("vision", "2,3,16,16", (2, 2)),
    ],
)
def test_architectures(tmp_path, name, shape, output):
    target = load_target(write(tmp_path, name), FrontendOptions(input_shapes=(shape,)))
    problem = load_problem(target.definition)
    model = problem.build(0)
    args, _ = problem.inputs(0)
    assert tuple(model(*args).shape) == output
    base = type(model).__mro__[1](model.config)
    assert list(model.state_dict()) == list(base.state_dict())


def test_bad_input(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{")
    with pytest.raises(TargetError, match="no JSON"):
        load_target(f"hf:{path}")
    path.write_text("{}")
    with pytest.raises(TargetError, match="model_type"):
        load_target(f"hf:{path}")
    path.write_text(json.dumps({"model_type": "no_such_model"}))
    with pytest.raises(TargetError, match="no_such_model"):
        load_target(f"hf:{path}")
    with pytest.raises(UsageError, match="init-args"):
        load_target(write(tmp_path, "causal"), FrontendOptions(init_args="[1]"))
