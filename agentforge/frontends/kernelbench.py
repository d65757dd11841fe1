"""A Python file in KernelBench's convention: `class Model`, `get_inputs()`, `get_init_inputs()`."""

from __future__ import annotations

from pathlib import Path

from agentforge.problems.own_modules import import_root_of
from agentforge.schema import Target, UsageError, expanded

from ._base import FrontendOptions
from ._load import make_target, read_source


class KernelBenchFile:
    """Every KernelBench file, unchanged."""

    name = "kernelbench"
    form = "file.py"

    def accepts(self, spec: str) -> bool:
        return ":" not in Path(spec).name

    def check(self, spec: str, options: FrontendOptions) -> None:
        _read(spec, options)

    def load(self, spec: str, options: FrontendOptions) -> Target:
        path, source = _read(spec, options)
        return make_target(
            name=path.stem,
            origin=spec,
            source=source,
            import_root=import_root_of(source, path.parent),
            device=options.device,
            progress=options.progress,
            longest_s=options.longest_s,
            failures=options.failures,
        )


def _read(spec: str, options: FrontendOptions) -> tuple[Path, str]:
    """The file and its text."""
    path = expanded(spec)
    source = read_source(path)
    described = options.inputs or options.input_shapes or options.input_dtypes or options.init_args
    if described or options.dtype != "float32":
        raise UsageError(
            f"{path.name} brings its own get_inputs(); --input, --input-shape, --input-dtype, --dtype "
            f"and --init-args go with {path.name}:ClassName"
        )
    return path, source
