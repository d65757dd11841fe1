"""A transformers model from a local config with random weights: `hf:CONFIG.json` (extra `hf`)."""

from __future__ import annotations

import copy
import inspect
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentforge.schema import MachineError, Target, TargetError, UsageError, Workload, expanded, pip_install

from ._base import FrontendOptions
from ._load import as_target, define, run_probe
from .generation import check_generation, generation_source, parse_lengths
from .huggingface_inputs import ModelInput, model_inputs
from .input_options import parse_inputs


class HuggingFace:
    """Any architecture of transformers whose inputs follow from its signature and config, or are given."""

    name = "huggingface"
    form = "hf:CONFIG.json"

    def accepts(self, spec: str) -> bool:
        return spec.startswith("hf:")

    def check(self, spec: str, options: FrontendOptions) -> None:
        _config(spec, options)

    def load(self, spec: str, options: FrontendOptions) -> Target:
        path, config = _config(spec, options)
        name = path.stem if path.stem != "config" else str(config["model_type"])
        payload = {
            "config": config,
            "options": replace(options, dtype=_check_dtype(options.dtype)).sendable(),
            "name": name,
            "origin": spec,
            "device": options.device,
        }
        found = run_probe("agentforge.frontends.huggingface:write_and_probe", name, payload, options.progress)
        return as_target(define(name, spec, found["source"]), spec, options.device, found)


def _config(spec: str, options: FrontendOptions) -> tuple[Path, dict[str, Any]]:
    """The config and its text."""
    if find_spec("transformers") is None:
        raise MachineError(f"hf: targets need transformers; run {pip_install('hf')}")
    path, config = _read(expanded(spec.removeprefix("hf:")))
    if options.init_args:
        raise UsageError("--init-args does not go with hf:; edit the config instead")
    _check_dtype(options.dtype)
    parse_inputs(options)
    if options.generate:
        parse_lengths(options.generate)
        if options.inputs or options.input_shapes:
            raise UsageError("--generate sets the inputs; leave out --input and --input-shape")
    return path, config


def _read(path: Path) -> tuple[Path, dict[str, Any]]:
    """Path and content of a transformers `config.json`, or of the one in a folder.

    Raises:
        TargetError: missing, not readable, not a JSON object, or without `model_type`.
    """
    try:
        if path.is_dir():
            path /= "config.json"
        if not path.is_file():
            raise TargetError(f"{path} does not exist; give the path of a transformers config.json")
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise TargetError(f"{path} is no JSON file: {error}") from error
    if isinstance(config, dict) and "_diffusers_version" in config:
        raise TargetError(f"{path} is a diffusers config; write a file whose class Model builds the model")
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise TargetError(f"{path} is no transformers config: it must be an object with model_type")
    return path, config


def write_and_probe(payload: dict[str, Any], report: Callable[[str], None]) -> dict[str, Any]:
    """Run in a child process: choose the inputs, write the source, run it.

    If that fails with images or audio, a model that takes text gets text alone.

    Args:
        payload: `config`, `options` (of `FrontendOptions`), `name`, `origin` and `device`.
        report: receives progress lines.

    Returns:
        What the probe returns, and `source`.

    Raises:
        TargetError: the model cannot be used.
    """
    options = FrontendOptions(**payload["options"])
    remarks = [
        *_on_dtype(payload["config"], options.dtype),
        *_on_quantization(payload["config"], options.dtype),
    ]
    report("importing transformers")
    if options.generate:
        report("building the model")
        source, workloads, notes = generating_source(payload["config"], options)
        definition = define(payload["name"], payload["origin"], source)
        check_generation(definition, parse_lengths(options.generate).prompt, payload["device"])
        dumped = [w.model_dump(mode="json") for w in workloads]
        return {"workloads": dumped, "notes": [*remarks, *notes], "source": source}
    try:
        found = _probed(payload, options, report)
    except TargetError as failed:
        for error in filter(None, (failed, failed.__cause__)):
            traceback.clear_frames(error.__traceback__)  # they keep the model
        try:
            found = _probed(payload, options, report, text_only=True)
        except TargetError:
            raise failed from failed.__cause__
    return {**found, "notes": [*remarks, *found["notes"]]}


def _probed(
    payload: dict[str, Any],
    options: FrontendOptions,
    report: Callable[[str], None],
    *,
    text_only: bool = False,
) -> dict[str, Any]:
    """What the probe returns, and `source`, for one choice of inputs."""
    from .probe import probe

    source, notes = model_source(payload["config"], options, text_only=text_only)
    definition = define(payload["name"], payload["origin"], source)
    described = {"definition": definition.model_dump(mode="json"), "device": payload["device"]}
    found = probe({**described, "chosen": True}, report)
    return {**found, "notes": [*notes, *found["notes"]], "source": source}


def _on_dtype(config: dict[str, Any], dtype: str) -> list[str]:
    """A note if the config names another dtype than the model gets."""
    named = str(config.get("dtype") or config.get("torch_dtype") or dtype).removeprefix("torch.")
    if named == dtype or named not in ("float32", "bfloat16", "float16"):
        return []
    return [f"the config names {named}, but the model is in {dtype}: --dtype {named} makes it the config's"]


def _on_quantization(config: dict[str, Any], dtype: str) -> list[str]:
    """A note if the config names a quantization, which the model does not get."""
    if not isinstance(named := config.get("quantization_config"), dict):
        return []
    method = named.get("quant_method", "of no name")
    return [
        f"the config names a quantization ({method}), which is applied to loaded weights only: this model "
        f"has dense {dtype} weights"
    ]


def model_source(
    config: dict[str, Any], options: FrontendOptions, *, text_only: bool = False
) -> tuple[str, list[str]]:
    """KernelBench-convention source that builds the model and draws its inputs, and notes for the user.

    Args:
        text_only: leave out images and audio.

    Raises:
        UsageError: an option does not fit.
        TargetError: transformers does not know the config's model, or its inputs cannot be derived.
    """
    made, base, architecture = _resolve(config)
    dtype = _check_dtype(options.dtype)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = {
        p.name: p.default is inspect.Parameter.empty
        for p in list(inspect.signature(base.forward).parameters.values())[1:]
        if p.kind not in kinds
    }
    inputs, notes = model_inputs(
        made,
        parameters,
        base.main_input_name,
        parse_inputs(options),
        dtype,
        text_only=text_only,
    )
    others = other_dtypes(made, base, dtype, options.tensor_dtypes)
    source = _head(config, architecture, others) + _TEMPLATE.format(
        cast=_cast(dtype, others),
        parameters=", ".join(i.name for i in inputs),
        arguments=", ".join(f"{i.name}={i.name}" for i in inputs),
        draws=_draws(inputs),
    )
    return source, notes


def generating_source(
    config: dict[str, Any], options: FrontendOptions
) -> tuple[str, tuple[Workload, ...], list[str]]:
    """As `model_source`, for a generation; with its workloads."""
    made, base, architecture = _resolve(config)
    dtype, lengths = _check_dtype(options.dtype), parse_lengths(options.generate)
    others = other_dtypes(made, base, dtype, options.tensor_dtypes)
    body, workloads, notes = generation_source(made, base, dtype, lengths, _cast(dtype, others))
    head = _head(config, architecture, others, "from transformers.cache_utils import Cache, StaticLayer")
    return head + body, workloads, notes


def other_dtypes(
    made: Any, base: Any, dtype: str, given: Sequence[tuple[str, str]] | None = None
) -> dict[str, str]:
    """Dtypes of the floating-point tensors that have another one than `dtype`, by name.

    They are those of a live model, or those that `from_pretrained` leaves: a buffer that is not saved, such
    as the frequencies of rotary embeddings, keeps the dtype that the constructor gives it.

    Args:
        made: the transformers config.
        base: the model's class.
        given: see `FrontendOptions.tensor_dtypes`.
    """
    if given is not None or dtype == "float32":
        return dict(given or ())
    import torch

    default, config = torch.get_default_dtype(), copy.deepcopy(made)
    for part in (config, *vars(config).values()):
        if getattr(part, "dtype", None) is not None:
            part.dtype = getattr(torch, dtype)
    try:
        torch.set_default_dtype(getattr(torch, dtype))
        with torch.device("meta"):  # nothing is computed
            model = base(config)
    except Exception:  # the constructor computes with values, or torch has no such default
        return {}
    finally:
        torch.set_default_dtype(default)
    unsaved = {id(m._buffers[name]) for m in model.modules() for name in m._non_persistent_buffers_set}
    return {
        name: kind
        for name, buffer in model.named_buffers()
        if id(buffer) in unsaved
        and buffer.is_floating_point()
        and (kind := str(buffer.dtype).removeprefix("torch.")) != dtype
    }


def _cast(dtype: str, others: Mapping[str, str]) -> str:
    """Statements that give the tensors of `self` their dtypes, in a method."""
    if not others:
        return f"self.to(torch.{dtype})"
    return _CAST.format(dtype=dtype)


def _head(config: dict[str, Any], architecture: str, others: Mapping[str, str], *imports: str) -> str:
    attention = config.get("_attn_implementation") or config.get("attn_implementation")
    dtypes = "".join(f"    {name!r}: torch.{dtype},\n" for name, dtype in others.items())
    return _HEAD.format(
        config=json.dumps(config, indent=4, sort_keys=True),
        attention='\n    config._attn_implementation = "eager"' if attention == "eager" else "",
        imports="\n".join([f"from transformers import {architecture or 'MODEL_MAPPING'}", *imports]),
        base=architecture or "MODEL_MAPPING[type(_configuration())]",
        others=_OTHERS.format(dtypes) if others else "",
    )


def _resolve(config: dict[str, Any]) -> tuple[Any, Any, str]:
    """The config object, the model's class, and the class's name if the config says it."""
    import transformers

    model_type, architectures = config["model_type"], config.get("architectures") or []
    if model_type not in transformers.CONFIG_MAPPING:
        raise TargetError(
            f"transformers {transformers.__version__} knows no model_type {model_type!r}; correct it, or "
            "write a file whose class Model builds the model"
        )
    fields = {k: v for k, v in config.items() if k not in ("model_type", "transformers_version")}
    try:
        made = transformers.AutoConfig.for_model(model_type, **fields)
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise TargetError(f"transformers refuses the config ({said}); correct that field") from error
    if not architectures:
        base = transformers.MODEL_MAPPING.get(type(made), None)
        if base is None:
            raise TargetError(f'name the class in the config: "architectures": ["..."] for {model_type}')
        return (made, base[0], base[0].__name__) if isinstance(base, tuple) else (made, base, "")
    architecture = str(architectures[0])
    base = getattr(transformers, architecture, None) if architecture.isidentifier() else None
    if not hasattr(base, "main_input_name"):
        raise TargetError(f"architectures[0] is {architecture!r}, no model class of transformers")
    return made, base, architecture


def _check_dtype(name: str) -> str:
    dtype = name.removeprefix("torch.")
    if dtype not in ("float32", "bfloat16", "float16", "float64"):
        raise UsageError(f"--dtype {name!r} does not fit; choose float32, bfloat16, float16 or float64")
    return dtype


def _draws(inputs: list[ModelInput]) -> str:
    if len(inputs) == 1:
        return f"[{inputs[0].expression}]"
    return "\n".join(["[", *(f"        {i.expression},  # {i.name}" for i in inputs), "    ]"])


_HEAD = '''"""A transformers model from a config, with random weights."""

import json

import torch
from transformers import AutoConfig
{imports}

CONFIG = json.loads(r"""
{config}
""")


def _configuration():
    fields = {{k: v for k, v in CONFIG.items() if k not in ("model_type", "transformers_version")}}
    config = AutoConfig.for_model(CONFIG["model_type"], **fields)
    for part in (config, *vars(config).values()):
        if hasattr(part, "use_cache"):
            part.use_cache = False{attention}
    return config


Base = {base}
{others}

'''

_OTHERS = '''OTHER_DTYPES = {{
{}}}
"""Of tensors that have another dtype than the rest."""
'''

_CAST = """for name, tensor in (*self.named_parameters(), *self.named_buffers()):
            if tensor.is_floating_point():
                tensor.data = tensor.data.to(OTHER_DTYPES.get(name, torch.{dtype}))"""

_TEMPLATE = '''def _tensors(output):
    """The tensors of an output, without hidden states and caches; one tensor alone is returned as it is."""
    if isinstance(output, torch.Tensor):
        return output
    values = output.values() if hasattr(output, "values") else output
    found = tuple(v for v in values if isinstance(v, torch.Tensor))
    if not found:  # a backbone returns tuples of feature maps
        found = tuple(t for v in values if isinstance(v, tuple) for t in v if isinstance(t, torch.Tensor))
    return found[0] if len(found) == 1 else found


class Model(Base):
    """The transformers class itself, so that its state_dict keys stay; it returns only tensors."""

    def __init__(self):
        super().__init__(_configuration())
        {cast}

    def forward(self, {parameters}):
        return _tensors(super().forward({arguments}))


# transformers looks up a class's module to see how its attention is written.
Model.__module__ = Base.__module__


def get_inputs():
    return {draws}


def get_init_inputs():
    return []
'''
