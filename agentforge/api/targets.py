"""What the caller points at becomes a `Target`: a live module, a file, or a Hugging Face configuration."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentforge.schema import Target, UsageError, content_hash

from .artifact import twin
from .kept_file import kept_file

if TYPE_CHECKING:
    import torch

    from agentforge.config import Settings
    from agentforge.frontends import FrontendOptions

_LIVE: weakref.WeakValueDictionary[str, torch.nn.Module] = weakref.WeakValueDictionary()
"""Live modules of this process by the hash of their definition: `resume` finds them again."""


def load_settings(settings: Settings | Mapping[str, Any] | Sequence[str] | None, **flags: Any) -> Settings:
    """Settings from file, environment and overrides.

    Args:
        settings: complete settings, `{"referee.processes": 5}`, or `["referee.processes=5"]`.
        flags: dots in keys written as `__`; None is no change, e.g. `budget__minutes=5`.

    Raises:
        UsageError: a setting is unknown or its value does not fit.
    """
    from agentforge.config import Settings
    from agentforge.config import load_settings as read

    changes = {key.replace("__", "."): value for key, value in flags.items() if value is not None}
    if isinstance(settings, Settings):
        return _changed(settings, changes)
    if isinstance(settings, Mapping):
        return read(changes={**settings, **changes})
    return read([settings] if isinstance(settings, str) else settings or (), changes)


def names_in(settings: Settings | Mapping[str, Any] | Sequence[str] | None) -> list[str]:
    """Paths of the overrides, such as `referee.processes`; none for complete settings."""
    if isinstance(settings, Mapping):
        return [
            f"{name}.{key}" if key else name
            for name, value in settings.items()
            for key in (value if isinstance(value, Mapping) else [""])
        ]
    overrides = [settings] if isinstance(settings, str) else settings
    return [o.partition("=")[0] for o in overrides] if isinstance(overrides, Sequence) else []


def _changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    from agentforge.config import load_settings as read

    wanted = read(changes=changes)
    for change in changes:
        group, _, field = change.partition(".")
        part = getattr(settings, group).model_copy(update={field: getattr(getattr(wanted, group), field)})
        settings = settings.model_copy(update={group: part})
    return settings


def where_of(model: Any, device: str | torch.device) -> str:
    """The device to run on: that of a live module, else the caller's choice.

    Raises:
        UsageError: the model is neither a path nor a module; it is on several devices, on another one than
            the caller's, or on the meta device; the device of a path is not the first of its kind.
    """
    device = str(device)
    kind, _, index = device.partition(":")
    if isinstance(model, str | os.PathLike):
        if index not in ("", "0"):
            raise UsageError(
                f"a path runs on the first device of a kind, not on {device}: give {kind!r}, and choose a "
                "GPU by CUDA_VISIBLE_DEVICES"
            )
        return kind
    _check_module(model)
    kinds = sorted({tensor.device.type for tensor in (*model.parameters(), *model.buffers())})
    if "meta" in kinds:
        raise UsageError(
            "the model has tensors without values, on the meta device: call "
            'model.to_empty(device="cpu"), and load its weights'
        )
    if len(kinds) > 1:
        raise UsageError(f"the model is spread over {' and '.join(kinds)}: move it to one device first")
    if device != "auto" and kinds and kinds != [kind]:
        raise UsageError(f"the model is on {kinds[0]}: call model.to({device!r}) first, or leave out device")
    return kinds[0] if kinds else device


def _check_module(model: Any) -> None:
    import torch

    if not isinstance(model, torch.nn.Module):
        kind = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise UsageError(f'give an nn.Module or a path such as "model.py", not {kind}')


def as_target(
    model: Any,
    inputs: Any,
    device: str,
    settings: Settings,
    init_args: Any = None,
    generate: str = "",
    shapes: str = "",
    dtype: str | torch.dtype = "",
) -> Target:
    """Load what the caller points at.

    Args:
        model: a module, `"file.py"`, `"file.py:ClassName"` or `"hf:config.json"`.
        inputs: example inputs: needed by a module and by `file.py:ClassName`; those of `hf:config.json`
            replace inputs of its own, or add optional ones.
        device: kind of device.
        settings: say where weights are kept, and have the options of frontends.
        init_args: constructor arguments of `file.py:ClassName`.
        generate: lengths of a generation, `prompt=128,new=64`.
        shapes: sizes of the inputs that vary, `batch=1..32`.
        dtype: of the weights of a path, and of the floating inputs that it brings.

    Raises:
        UsageError: model and inputs do not go together; says what to do.
        TargetError: the model cannot be used.
    """
    check_model(model, inputs, settings, init_args, generate, shapes, dtype)
    from agentforge.frontends import load_target, with_shapes

    if isinstance(model, str | os.PathLike):
        spec = os.fspath(model)
        options = _file_options(spec, inputs, init_args, generate, shapes, dtype)
        return load_target(spec, replace(options, device=device), settings.frontend_options)
    from .live_model import live_target

    model = _unwrapped(model)
    if generate:
        target = _generating(model, generate, device, settings)
    else:
        target = with_shapes(live_target(model, as_arguments(inputs), device, settings.home), shapes)
    _LIVE[target.definition.hash] = model
    return target


def check_model(
    model: Any,
    inputs: Any,
    settings: Settings,
    init_args: Any = None,
    generate: str = "",
    shapes: str = "",
    dtype: str | torch.dtype = "",
) -> None:
    """Refuse what `as_target` cannot load, as far as it shows without running the model.

    Raises:
        UsageError, TargetError: as for `as_target`.
    """
    from agentforge.frontends import check_target, parse_shapes
    from agentforge.frontends.generation import parse_lengths

    if isinstance(model, str | os.PathLike):
        spec = os.fspath(model)
        options = _file_options(spec, inputs, init_args, generate, shapes, dtype)
        check_target(spec, options, settings.frontend_options)
        return
    _check_module(model)
    if init_args is not None:
        raise UsageError("init_args goes with a path; a module is constructed already")
    if dtype:
        raise UsageError("dtype goes with a path: cast the module, for example model.to(torch.bfloat16)")
    if generate and inputs is not None:
        raise UsageError("generate sets the inputs: leave out the example inputs")
    if shapes and generate:
        raise UsageError("generate sets the shapes: leave out shapes")
    if inputs is None and not generate:
        raise UsageError("give example inputs: agentforge.optimize(model, (x,))")
    if generate:
        parse_lengths(generate)
        _check_generating(_unwrapped(model))
    elif shapes:
        parse_shapes(shapes)


def _unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """What torch.compile wrapped, if it did."""
    original: torch.nn.Module = getattr(model, "_orig_mod", model)
    return original


def _check_generating(model: torch.nn.Module) -> None:
    config: Any = getattr(model, "config", None)
    if not type(model).__module__.startswith("transformers.") or not hasattr(config, "to_json_string"):
        raise UsageError(
            f"generate goes with a causal language model of transformers, not {type(model).__name__}"
        )
    if model.training:
        raise UsageError(f"{type(model).__name__} is in training mode: call model.eval() first")


def _generating(model: torch.nn.Module, generate: str, device: str, settings: Settings) -> Target:
    """The target of a generation by a live model: its class and config, with random weights."""
    from agentforge.frontends import FrontendOptions, load_target

    config: Any = model.config
    fields = json.loads(config.to_json_string(use_diff=False))
    attention = getattr(config, "_attn_implementation", None)
    fields |= {"architectures": [type(model).__name__], "_attn_implementation": attention}
    text = json.dumps(fields, indent=1, sort_keys=True)
    file = settings.home / "configs" / content_hash([text]) / f"{config.model_type}.json"
    with kept_file(file, "the model's config") as draft:
        draft.write_text(text, encoding="utf-8")
    dtypes = {
        name: str(tensor.dtype).removeprefix("torch.")
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
        if tensor.is_floating_point()
    }
    dtype = next(iter(dtypes.values()))
    others = tuple((name, other) for name, other in dtypes.items() if other != dtype)
    options = FrontendOptions(generate=generate, dtype=dtype, tensor_dtypes=others, device=device)
    return load_target(f"hf:{file}", options)


def generator(target: Target, model: torch.nn.Module) -> torch.nn.Module:
    """A copy of a live model that shares its tensors, of the class that its target of a generation has."""
    from agentforge.problems.kernelbench import load_problem

    copied = twin(model)
    copied.__class__ = load_problem(target.definition).model_class
    return copied


def live_module(definition: str) -> torch.nn.Module | None:
    """The caller's module that a target was made from, if it is in this process and still alive."""
    return _LIVE.get(definition)


def as_arguments(inputs: Any) -> tuple[Any, ...] | dict[str, Any]:
    """Example inputs as positional or keyword arguments; one bare tensor is one argument."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    return tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)


def _file_options(
    spec: str, inputs: Any, init_args: Any, generate: str, shapes: str, dtype: str | torch.dtype
) -> FrontendOptions:
    from agentforge.frontends import FrontendOptions

    sizes: list[str] = []
    dtypes: list[str] = []
    if inputs is not None:
        arguments = as_arguments(inputs)
        named = arguments.items() if isinstance(arguments, dict) else (("", value) for value in arguments)
        for name, value in named:
            size, dtype_of_input = _size_of(value)
            sizes.append(f"{name}={size}" if name else size)
            dtypes.append(dtype_of_input)
        if not spec.startswith("hf:") and ":" not in os.path.basename(spec):  # noqa: PTH119 - no path yet
            raise UsageError(f"{spec} brings its own inputs: leave out the example inputs")
    return FrontendOptions(
        input_shapes=tuple(sizes),
        input_dtypes=tuple(dtypes),
        generate=generate,
        shapes=shapes,
        dtype=str(dtype).removeprefix("torch.") or "float32",
        init_args="" if init_args is None else _as_json(init_args),
    )


def _as_json(init_args: Any) -> str:
    try:
        return json.dumps(init_args)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"init_args takes what JSON can express ({error}): construct the model, and pass that"
        ) from error


def _size_of(value: Any) -> tuple[str, str]:
    import torch

    if not isinstance(value, torch.Tensor):
        raise UsageError(f"example inputs of a file are tensors, not {type(value).__name__}")
    return ",".join(map(str, value.shape)), str(value.dtype).removeprefix("torch.")
