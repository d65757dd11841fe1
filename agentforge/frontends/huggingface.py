"""A transformers model from a local config with random weights: `hf:CONFIG.json` (extra `hf`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentforge.schema import DType, MachineError, Target, TargetError, UsageError

from ._base import FrontendOptions
from ._load import make_target

_DEFAULT_TOKENS = (1, 128)
_VISION_KEYS = ("image_size", "num_channels")


@dataclass(frozen=True)
class _Task:
    """How to call an architecture: the input's name and the output field that is the answer."""

    input_name: str
    output: str


class HuggingFace:
    """Causal LM, masked LM or encoder, sequence classification, vision, by the config's architecture."""

    name = "huggingface"

    def accepts(self, spec: str) -> bool:
        return spec.startswith("hf:")

    def load(self, spec: str, options: FrontendOptions) -> Target:
        if find_spec("transformers") is None:
            raise MachineError("hf: targets need transformers; install it with: pip install 'agentforge[hf]'")
        path = Path(spec.removeprefix("hf:")).expanduser()
        config = read_config(path)
        source = model_source(config, options)
        return make_target(
            name=path.stem if path.stem != "config" else str(config["model_type"]),
            origin=spec,
            source=source,
            import_root=None,
            device=options.device,
        )


def read_config(path: Path) -> dict[str, Any]:
    """Read a transformers `config.json`.

    Raises:
        TargetError: missing, no JSON object, or without `model_type`.
    """
    if not path.is_file():
        raise TargetError(f"{path} does not exist; give the path of a transformers config.json")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TargetError(f"{path} is no JSON file: {error}") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise TargetError(f"{path} is no transformers config: it must be an object with model_type")
    return config


def _task(architecture: str, config: dict[str, Any]) -> _Task:
    """The input and output names of an architecture, by the naming scheme of transformers."""
    vision = all(key in config for key in _VISION_KEYS) or "ForImageClassification" in architecture
    heads = ("ForCausalLM", "LMHead", "ForMaskedLM", "Classification", "ForPreTraining")
    output = "logits" if any(head in architecture for head in heads) else "last_hidden_state"
    return _Task("pixel_values" if vision else "input_ids", output)


def model_source(config: dict[str, Any], options: FrontendOptions) -> str:
    """KernelBench-convention source that builds the model and draws its input.

    Raises:
        UsageError: an option does not fit.
        TargetError: the config names no architecture.
    """
    architectures = config.get("architectures") or []
    architecture = str(architectures[0]) if architectures else ""
    if architecture and not architecture.isidentifier():
        raise TargetError(f"architectures[0] is {architecture!r}, no class of transformers")
    if options.init_args:
        raise UsageError("--init-args does not go with hf:; edit the config instead")
    task = _task(architecture, config)
    attention = config.get("_attn_implementation") or config.get("attn_implementation") or "sdpa"
    return _TEMPLATE.format(
        config=json.dumps(config, indent=4, sort_keys=True),
        base=architecture or "None",
        import_line=f"from transformers import {architecture}" if architecture else "",
        base_expression=architecture or "MODEL_MAPPING[type(_configuration())]",
        mapping_import="" if architecture else "from transformers import MODEL_MAPPING",
        attention="eager" if attention == "eager" else "sdpa",
        dtype=_dtype(options.dtype),
        input_name=task.input_name,
        output=task.output,
        draw=_draw(task, config, options),
    )


def _dtype(name: str) -> str:
    try:
        dtype = DType(name)
    except ValueError as error:
        raise UsageError(f"--dtype {name!r} is not known; choose float32, bfloat16 or float16") from error
    if not dtype.is_floating:
        raise UsageError(f"--dtype {name!r} is no floating dtype; choose float32, bfloat16 or float16")
    return dtype.value


def _draw(task: _Task, config: dict[str, Any], options: FrontendOptions) -> str:
    """Python expression for the input tensor."""
    if len(options.input_shapes) > 1:
        raise UsageError("hf: targets take one --input-shape: batch,tokens or batch,channels,height,width")
    shape = _shape(options.input_shapes[0]) if options.input_shapes else _default_shape(task, config)
    if task.input_name == "pixel_values":
        return f"torch.randn({shape!r}).to(torch.{_dtype(options.dtype)})"
    vocabulary = config.get("vocab_size")
    limit = vocabulary if isinstance(vocabulary, int) else "_configuration().vocab_size"
    return f"torch.randint(0, {limit}, {shape!r})"


def _default_shape(task: _Task, config: dict[str, Any]) -> tuple[int, ...]:
    if task.input_name != "pixel_values":
        return _DEFAULT_TOKENS
    size = config.get("image_size", 224)
    height, width = size if isinstance(size, list) else (size, size)
    return (1, int(config.get("num_channels", 3)), int(height), int(width))


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(s) for s in text.rpartition("=")[2].split(","))
    except ValueError as error:
        raise UsageError(f"--input-shape {text!r} does not read; write 1,128") from error


_TEMPLATE = '''"""A transformers model from a config, with random weights."""

import json

import torch
from transformers import AutoConfig
{import_line}
{mapping_import}

CONFIG = json.loads(r"""
{config}
""")


def _configuration():
    fields = {{k: v for k, v in CONFIG.items() if k not in ("model_type", "transformers_version")}}
    config = AutoConfig.for_model(CONFIG["model_type"], **fields)
    config.use_cache = False
    config._attn_implementation = "{attention}"
    return config


Base = {base_expression}


class Model(Base):
    """The transformers class itself, so that its state_dict keys stay; its output is one tensor."""

    def __init__(self):
        super().__init__(_configuration())
        self.to(torch.{dtype})

    def forward(self, {input_name}):
        return super().forward({input_name}={input_name}, return_dict=True).{output}


# transformers looks up a class's module to see how its attention is written.
Model.__module__ = Base.__module__


def get_inputs():
    return [{draw}]


def get_init_inputs():
    return []
'''
