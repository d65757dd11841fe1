"""An ordinary nn.Module: `file.py:ClassName` with shapes, dtypes and constructor arguments from options."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentforge.schema import DType, Target, TargetError, UsageError

from ._base import FrontendOptions
from ._load import import_root_of, make_target, read_source

_INTEGERS = {DType.INT64, DType.INT32, DType.INT16, DType.INT8, DType.UINT8}
_INDEX_LIMIT = 16
"""Integer inputs are drawn below this: indices into a table that we do not know the size of."""


@dataclass(frozen=True)
class InputOption:
    """One `--input-shape` with its dtype."""

    keyword: str
    """Empty for a positional input."""
    shape: tuple[int, ...]
    dtype: DType

    @property
    def expression(self) -> str:
        """Python that draws it."""
        sizes = "".join(f"{s}, " for s in self.shape)
        if self.dtype in _INTEGERS:
            return f"torch.randint(0, {_INDEX_LIMIT}, ({sizes}), dtype=torch.{self.dtype.value})"
        if self.dtype is DType.BOOL:
            return f"torch.rand(({sizes})) < 0.5"
        drawn = f"torch.randn({sizes.rstrip(', ')})" if self.shape else "torch.randn(())"
        return drawn if self.dtype is DType.FLOAT32 else f"{drawn}.to(torch.{self.dtype.value})"


class ModuleClass:
    """`file.py:ClassName --input-shape 1,512`. Thread-safe."""

    name = "module"

    def accepts(self, spec: str) -> bool:
        return not spec.startswith("hf:") and ":" in Path(spec).name

    def load(self, spec: str, options: FrontendOptions) -> Target:
        file, _, class_name = spec.rpartition(":")
        path = Path(file).expanduser()
        if not class_name.isidentifier():
            raise UsageError(f"{class_name!r} is no class name; write {path.name}:ClassName")
        source = read_source(path)
        if not _defines(source, class_name):
            raise TargetError(f"{path.name} defines no {class_name}; its classes are: {_classes(source)}")
        inputs = parse_inputs(options)
        if not inputs:
            raise UsageError(f"say what {class_name} takes: --input-shape 1,512 (once for each input)")
        return make_target(
            name=f"{path.stem}_{class_name}",
            origin=spec,
            source=source + _appendix(class_name, inputs, parse_init(options.init_args), options.dtype),
            import_root=import_root_of(source, path.parent),
            device=options.device,
        )


def parse_inputs(options: FrontendOptions) -> tuple[InputOption, ...]:
    """Read `--input-shape` and `--input-dtype`.

    Raises:
        UsageError: a shape or a dtype does not read.
    """
    default = _dtype(options.dtype, "--dtype")
    inputs = []
    for index, text in enumerate(options.input_shapes):
        keyword, _, sizes = text.rpartition("=")
        try:
            shape = tuple(int(s) for s in sizes.split(",") if s.strip())
        except ValueError:
            shape = (-1,)
        if any(s < 0 for s in shape) or (keyword and not keyword.isidentifier()):
            raise UsageError(f"--input-shape {text!r} does not read; write 1,512 or name=1,512")
        dtype = default
        if options.input_dtypes:
            named = options.input_dtypes[min(index, len(options.input_dtypes) - 1)]
            dtype = _dtype(named, "--input-dtype")
        inputs.append(InputOption(keyword, shape, dtype))
    return tuple(inputs)


def parse_init(text: str) -> list[Any] | dict[str, Any]:
    """Read `--init-args`.

    Raises:
        UsageError: it is no JSON list or object.
    """
    if not text.strip():
        return []
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"--init-args is no JSON ({error}); write '[64, 8]' or '{{\"dim\": 64}}'") from error
    if not isinstance(value, (list, dict)):
        raise UsageError("--init-args must be a JSON list or object: '[64, 8]' or '{\"dim\": 64}'")
    return value


def _dtype(name: str, option: str) -> DType:
    try:
        return DType(name.removeprefix("torch."))
    except ValueError as error:
        known = ", ".join(d.value for d in DType)
        raise UsageError(f"{option} {name!r} is not known; choose one of: {known}") from error


def _defines(source: str, name: str) -> bool:
    """Whether the top level binds `name` in any way that can be seen without running it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.alias) and name in (node.asname or node.name, "*"):
            return True
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
            return True
    return False


def _classes(source: str) -> str:
    names = [n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef)]
    return ", ".join(names) or "none"


def _appendix(
    class_name: str, inputs: tuple[InputOption, ...], init: list[Any] | dict[str, Any], dtype: str
) -> str:
    """What turns the user's source into KernelBench's convention; the class stays the user's own."""
    keywords = any(i.keyword for i in inputs)
    lines = [
        "",
        "",
        "# --- added by AgentForge: KernelBench's convention around the class above ---",
        "import inspect",
        "",
        "import torch",
        "",
        f"Model = {class_name}",
    ]
    if _dtype(dtype, "--dtype") is not DType.FLOAT32:
        # The initialiser is wrapped, not the class: state_dict keys and super(...) calls stay right.
        lines += [
            "_initialise = Model.__init__",
            "",
            "",
            "def _initialise_and_cast(self, *args, **kwargs):",
            "    _initialise(self, *args, **kwargs)",
            "    if type(self) is Model:",
            f"        self.to(torch.{_dtype(dtype, '--dtype').value})",
            "",
            "",
            "Model.__init__ = _initialise_and_cast",
        ]
    lines += ["", "", "def get_inputs():"]
    if keywords:
        lines += ["    names = list(inspect.signature(Model.forward).parameters)[1:]", "    positional = ["]
        lines += [f"        {i.expression}," for i in inputs if not i.keyword]
        lines += ["    ]", "    return {", "        **dict(zip(names, positional)),"]
        lines += [f"        {i.keyword!r}: {i.expression}," for i in inputs if i.keyword]
        lines += ["    }"]
    else:
        lines += ["    return [", *(f"        {i.expression}," for i in inputs), "    ]"]
    lines += ["", "", "def get_init_inputs():", f"    return {init!r}", ""]
    return "\n".join(lines)
