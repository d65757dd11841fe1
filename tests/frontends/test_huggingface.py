from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
import torch

from agentforge.frontends import FrontendOptions, load_target
from agentforge.frontends._load import define
from agentforge.frontends.huggingface import HuggingFace, model_source, write_and_probe
from agentforge.problems.kernelbench import load_problem
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
    "encoder_decoder": {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 1,
        "num_heads": 4,
        "vocab_size": 100,
    },
    "image_and_text": {
        "model_type": "llava",
        "architectures": ["LlavaForConditionalGeneration"],
        "text_config": {"model_type": "llama", **TEXT},
        "vision_config": {
            "model_type": "clip_vision_model",
            **{**SMALL, "num_hidden_layers": 2, "image_size": 16, "patch_size": 8},
        },
        "image_token_id": 99,
    },
    "no_sdpa": {"model_type": "mamba", "hidden_size": 32, "num_hidden_layers": 1, "vocab_size": 100},
    "vision": {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification"],
        "image_size": 16,
        "patch_size": 8,
        "num_channels": 3,
        **SMALL,
    },
    "backbone": {
        "model_type": "resnet",
        "architectures": ["ResNetBackbone"],
        "embedding_size": 8,
        "hidden_sizes": [8, 16],
        "depths": [1, 1],
        "layer_type": "basic",
        "out_features": ["stage1", "stage2"],
    },
    "ends_with_eos": {
        "model_type": "bart",
        "architectures": ["BartForSequenceClassification"],
        "vocab_size": 20,
        "d_model": 32,
        "num_labels": 5,
        **{f"{part}_layers": 1 for part in ("encoder", "decoder")},
        **{f"{part}_attention_heads": 2 for part in ("encoder", "decoder")},
        **{f"{part}_ffn_dim": 64 for part in ("encoder", "decoder")},
    },
    "image_sizes_in_a_list": {
        "model_type": "internvl",
        "architectures": ["InternVLForConditionalGeneration"],
        "text_config": {"model_type": "llama", **TEXT},
        "vision_config": {
            "model_type": "internvl_vision",
            **SMALL,
            "image_size": [16, 16],
            "patch_size": [4, 4],
        },
        "image_token_id": 99,
        "image_seq_length": 4,
    },
    "image_queries": {
        "model_type": "blip-2",
        "architectures": ["Blip2ForConditionalGeneration"],
        "text_config": {
            "model_type": "opt",
            "vocab_size": 100,
            "hidden_size": 32,
            "word_embed_proj_dim": 32,
            "ffn_dim": 64,
            "num_attention_heads": 4,
            "num_hidden_layers": 1,
        },
        "vision_config": {**SMALL, "image_size": 16, "patch_size": 4},
        "qformer_config": {**SMALL, "vocab_size": 100},
        "image_token_index": 99,
        "num_query_tokens": 3,
    },
    "images_of_several_sizes": {
        "model_type": "llava_next",
        "architectures": ["LlavaNextForConditionalGeneration"],
        "text_config": {"model_type": "llama", **TEXT},
        "vision_config": {
            "model_type": "clip_vision_model",
            **{**SMALL, "num_hidden_layers": 2, "image_size": 16, "patch_size": 8},
        },
        "image_token_index": 99,
    },
    "audio_and_text": {
        "model_type": "qwen2_audio",
        "architectures": ["Qwen2AudioForConditionalGeneration"],
        "text_config": {"model_type": "qwen2", **TEXT, "num_key_value_heads": 4},
        "audio_config": {
            "model_type": "qwen2_audio_encoder",
            "d_model": 32,
            "encoder_layers": 1,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 64,
            "num_mel_bins": 8,
            "max_source_positions": 16,
        },
        "audio_token_index": 99,
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
    ("name", "given", "outputs"),
    [
        ("causal", "input_ids=2,8", [(2, 8, 100)]),
        ("encoder", "input_ids=2,8", [(2, 8, 32), (2, 32)]),
        ("masked", "attention_mask=1,128", [(1, 128, 100)]),
        ("classifier", "input_ids=2,8:int32", [(2, 2)]),
        ("vision", "pixel_values=2,3,16,16", [(2, 2)]),
        ("encoder_decoder", "decoder_input_ids=1,8", [(1, 8, 100), (1, 128, 32)]),
        ("image_and_text", "input_ids=1,20", [(1, 20, 100), (4, 32)]),
        ("no_sdpa", "input_ids=1,8", [(1, 8, 32)]),
        ("backbone", "pixel_values=1,3,32,32", [(1, 8, 8, 8), (1, 16, 4, 4)]),
        ("ends_with_eos", "input_ids=4,8 decoder_input_ids=4,8", [(4, 5), (4, 8, 32)]),
        ("image_sizes_in_a_list", "input_ids=1,20", [(1, 20, 100), (1, 4, 32)]),
        ("image_queries", "input_ids=1,20", [(1, 20, 100)]),
    ],
)
def test_architectures(tmp_path, name, given, outputs):
    options = FrontendOptions(inputs=tuple(given.split()))
    source, notes = model_source(CONFIGS[name], options)
    problem = load_problem(define(name, name, source))
    model = problem.build(0)
    args, _ = problem.inputs(0)
    found = model(*args)
    assert [tuple(t.shape) for t in (found if isinstance(found, tuple) else (found,))] == outputs
    assert not notes
    base = type(model).__mro__[1](model.config)
    assert list(model.state_dict()) == list(base.state_dict())


def test_of_several_base_classes_the_first_is_taken():
    source, _ = model_source({"model_type": "funnel"}, FrontendOptions())
    assert load_problem(define("funnel", "funnel", source)).model_class.__mro__[1].__name__ == "FunnelModel"


def test_bad_input(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{")
    with pytest.raises(TargetError, match="no JSON"):
        load_target(f"hf:{path}")
    path.write_text("{}")
    with pytest.raises(TargetError, match="model_type"):
        load_target(f"hf:{path}")
    with pytest.raises(TargetError, match="model_type"):
        load_target(f"hf:{tmp_path}")
    with pytest.raises(TargetError, match=r"nowhere/config\.json does not exist"):
        load_target(f"hf:{tmp_path / 'nowhere' / 'config.json'}")
    with pytest.raises(TargetError, match="cannot be read: File name too long"):
        load_target(f"hf:{tmp_path}/{'x' * 300}.json")
    with pytest.raises(TargetError, match="no_such_model"):
        model_source({"model_type": "no_such_model"}, FrontendOptions())
    with pytest.raises(TargetError, match=r"refuses the config \(.*hidden_size.*expected int.*\); correct"):
        model_source({"model_type": "bert", "hidden_size": "wide"}, FrontendOptions())
    with pytest.raises(UsageError, match="takes no 'pixels'; it takes: input_ids, "):
        model_source(CONFIGS["causal"], FrontendOptions(inputs=("pixels=1,3",)))
    with pytest.raises(TargetError, match="--input past_time_features=SIZES"):
        model_source({"model_type": "time_series_transformer"}, FrontendOptions(inputs=("past_values=1,8",)))
    with pytest.raises(UsageError, match="init-args"):
        load_target(write(tmp_path, "causal"), FrontendOptions(init_args="[1]"))


@pytest.mark.slow
def test_the_folder_of_a_config_is_a_target(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["masked"]))
    target = load_target(f"hf:{tmp_path}", FrontendOptions(inputs=("input_ids=1,4",), dtype="torch.bfloat16"))
    assert target.name == "bert"
    assert {p.dtype for p in load_problem(target.definition).build(0).parameters()} == {torch.bfloat16}
    assert not target.notes


@pytest.mark.parametrize("dtype", ["float8_e5m2", "int64", "float99"])
def test_a_dtype_that_no_model_has_is_refused(dtype):
    with pytest.raises(UsageError, match="choose float32, bfloat16, float16 or float64"):
        model_source(CONFIGS["causal"], FrontendOptions(dtype=dtype))


def test_a_quantization_that_the_config_names_is_a_note():
    quantized = {**CONFIGS["masked"], "quantization_config": {"quant_method": "fp8"}}
    (note,) = probed(quantized, "input_ids=1,4")["notes"]
    assert "a quantization (fp8), which is applied to loaded weights only" in note
    assert not probed(CONFIGS["masked"], "input_ids=1,4")["notes"]


def probed(config: dict[str, Any], *inputs: str, dtype: str = "float32") -> dict[str, Any]:
    """What the child process of a target finds, with these `--input`."""
    options = asdict(FrontendOptions(inputs=inputs, dtype=dtype))
    payload = {"config": config, "options": options, "name": "m", "origin": "m", "device": "cpu"}
    return write_and_probe(payload, lambda line: None)


OTHER_INPUTS = "with --input NAME=SIZES, or write a file whose class Model builds the model"


def test_inputs_that_do_not_fit_are_not_the_users_error():
    config = {
        "model_type": "musicgen_decoder", "vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "ffn_dim": 32, "num_codebooks": 2, "architectures": ["MusicgenForCausalLM"],
    }  # fmt: skip
    with pytest.raises(TargetError, match=rf"give other inputs than input_ids=[0-9,]+.* {OTHER_INPUTS}"):
        probed(config)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["images_of_several_sizes", "audio_and_text"])
def test_a_model_that_cannot_be_called_with_images_or_audio_gets_text(name):
    described = probed(CONFIGS[name], "input_ids=1,8")
    assert [(i["name"], i["shape"]) for i in described["inputs"]] == [("input_ids", [1, 8])]
    assert described["outputs"] == [[[1, 8, 100], "torch.float32"]]
    assert [note for note in described["notes"] if note.startswith("the model was called with text only;")]


@pytest.mark.slow
def test_images_that_are_given_are_not_left_out():
    with pytest.raises(TargetError, match=f"pixel_values=1,3,16,16 {OTHER_INPUTS}"):
        probed(CONFIGS["images_of_several_sizes"], "input_ids=1,8", "pixel_values=1,3,16,16")


def test_a_dtype_changes_neither_the_vocabulary_nor_a_mask():
    given = ("input_ids=1,400:int32", "attention_mask=1,400:bool")
    source, _ = model_source(CONFIGS["encoder"], FrontendOptions(inputs=given))
    (ids, mask), _ = load_problem(define("m", "m", source)).inputs(0)
    assert ids.dtype is torch.int32
    assert ids.max() > 50
    assert mask.dtype is torch.bool
    assert mask.all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_buffers_that_are_not_saved_keep_their_dtype(dtype):
    source, _ = model_source(CONFIGS["causal"], FrontendOptions(inputs=("input_ids=1,8",), dtype=dtype))
    problem = load_problem(define("m", "m", source))
    model = problem.build(0)
    assert {p.dtype for p in model.parameters()} == {getattr(torch, dtype)}
    assert model.model.rotary_emb.inv_freq.dtype is torch.float32
    assert model(*problem.inputs(0)[0]).dtype is getattr(torch, dtype)
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize("key", ["torch_dtype", "dtype"])
def test_another_dtype_than_the_configs_is_a_note(key):
    def notes(dtype: str) -> list[str]:
        return probed({**CONFIGS["encoder"], key: "bfloat16"}, "input_ids=1,4", dtype=dtype)["notes"]

    assert any("--dtype bfloat16" in note for note in notes("float32"))
    assert not any("--dtype" in note for note in notes("bfloat16"))
