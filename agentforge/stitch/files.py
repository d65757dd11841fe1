"""Files of a stitched model: the referee evaluates them and the artifact ships them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from agentforge.languages import MANIFEST, languages, runtime_files
from agentforge.languages.solutions.folder import manifest_text
from agentforge.profiling.graph.extract import STRIDED, draw_expression
from agentforge.schema import BuildSpec, Definition, ScalarInput, Solution, SourceFile, Target, content_hash

from .sources import FOLDER, local_modules

Mode = Literal[
    "kernels",
    "kernels+packed",
    "kernels+bf16",
    "kernels+int8",
    "kernels+streams",
    "kernels+compile",
    "kernels+graph",
    "kernels+graph+streams",
    "compile",
    "compile+freezing",
    "compile+max-autotune",
    "compile+max-autotune-freezing",
    "compile+contiguous",
    "eager",
]
"""What runs in the captured call: the kernels between eager operators (`kernels`), the same with
torch.compile around them or replayed as a CUDA graph, torch.compile in one of its modes, in its default mode
for calls whose tensors are contiguous (`compile+contiguous`), or the original model (`eager`).
`packed` computes products with weights by oneDNN from packed copies, `bf16` and `int8` from copies in lower
precision, which only a user's permission allows; `streams` runs independent steps on
several GPU streams.
"""

OPTIONAL = {"agentforge_stitch/graph.py": "graph", "agentforge_stitch/branches.py": "streams"}
"""Run-time modules that an artifact imports only if its mode has this part."""

_RUNTIME = Path(__file__).with_name("runtime")

_PACKAGE = '''"""{title}

    from {package} import optimize
    model = optimize(model.eval())
    with torch.inference_mode():
        model(...)
"""

from pathlib import Path

from .agentforge_stitch import Artifact

_ARTIFACT = Artifact(Path(__file__).resolve().parent)

optimize = _ARTIFACT.optimize
restore = _ARTIFACT.restore
calls = _ARTIFACT.calls

__all__ = ["calls", "optimize", "restore"]
'''

_PATH = f"""
import sys

_MODULES = str(_ARTIFACT.folder / "{FOLDER}")
if _MODULES not in sys.path:
    sys.path.append(_MODULES)  # what reference_model imports; modules of these names elsewhere come first
"""
"""End of the package if the model's source imports modules that travel with it."""

_MODEL_NEW = '''"""{title} In KernelBench's convention: same init arguments, same state_dict."""

import importlib.util
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
for _path in (str(_FOLDER / "reference_modules"), str(_FOLDER)):
    if _path not in sys.path:
        sys.path.insert(0, _path)

from agentforge_stitch import Artifact

_ARTIFACT = Artifact(_FOLDER)


def _reference():
    """The model's own source, under a name that no other artifact in this process has."""
    name = f"agentforge_{_ARTIFACT.id}_reference"
    spec = importlib.util.spec_from_file_location(name, _FOLDER / "reference_model.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    arguments, sys.argv[1:] = sys.argv[1:], []  # they are not the source's
    try:
        spec.loader.exec_module(module)
    finally:
        sys.argv[1:] = arguments
    return module


class ModelNew(_reference().Model):
    """The original model with the winning variant installed{around}."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        _ARTIFACT.optimize(self)
'''


def kernel_name(definition: Definition) -> str:
    """Name of a definition's kernel in the artifact: a unique, readable identifier."""
    return f"{re.sub(r'[^0-9a-z]+', '_', definition.op_type.lower())}_{definition.hash[:6]}"


def stitched_files(
    target: Target,
    mode: Mode,
    units: Sequence[Mapping[str, Any]],
    texts: Mapping[str, str],
    kernels: Mapping[str, Solution],
    ranges: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """Return all files by relative path.

    Args:
        ranges: units for ranges of shapes; each takes the place of the units that it names.
    """
    used = {site["kernel"] for unit in units for site in unit["calls"].values()}
    replaced = {name for entry in ranges for name in entry["units"]}
    texts = {
        path: text
        for path, text in texts.items()
        if path not in {unit["source"] for unit in units if unit["unit"] in replaced}
    }
    plan: dict[str, Any] = {
        "mode": mode,
        "target": target.definition.hash,
        "device": target.device,
        "units": [unit for unit in units if unit["unit"] not in replaced],
        "ranges": list(ranges),
        "kernels": {name: kernels[name].spec.entry_point for name in sorted(used)},
    }
    if target.listed:
        plan["workloads"] = len(target.workloads)
    plan["id"] = content_hash([plan, dict(texts), {n: kernels[n].hash for n in used}], length=12)
    title = f"{target.name}, optimized."
    # The referee looks for this name, to let such a candidate start with a compiler that is ready.
    around = ", under torch.compile" if "compile" in mode else ""
    root = target.definition.import_root
    reference = target.definition.reference
    modules = local_modules(reference, Path(root)) if root else {}
    files = {
        "plan.json": json.dumps(plan, indent=1) + "\n",
        "__init__.py": _PACKAGE.format(title=title, package="artifact") + (_PATH if modules else ""),
        "model_new.py": _MODEL_NEW.replace("{title}", title).replace("{around}", around),
        "reference_model.py": reference + _examples(target),
        **{f"{FOLDER}/{path}": text for path, text in modules.items()},
        **texts,
    }
    for path in sorted(_RUNTIME.glob("*.py")):
        files[f"agentforge_stitch/{path.name}"] = path.read_text()
    # The C++ runtime counts the calls of kernels in every language.
    for language in ("cpp", *(kernels[name].spec.language for name in used)):
        files.update(runtime_files(language))
    for name in sorted(used):
        solution = kernels[name]
        files[f"kernels/{name}/{MANIFEST}"] = manifest_text(solution)
        for file in solution.sources:
            files[f"kernels/{name}/{file.path}"] = file.content
    return files


def _examples(target: Target) -> str:
    """Source of a call for each measured shape or workload, if there are several."""
    if target.listed:
        listed = "".join(f"    lambda: get_inputs({w.key!r}),\n" for w in target.workloads)
        return f"\nEXAMPLES = [\n{listed}]\n"
    if not target.shapes:
        return ""
    functions = []
    for workload in target.workloads:
        texts = {
            i.name: repr(i.value) if isinstance(i, ScalarInput) else draw_expression(i)
            for i in workload.inputs
        }
        named = any(i.keyword for i in workload.inputs)
        items = (f"{name!r}: {text}" if named else text for name, text in texts.items())
        functions.append(f"lambda: {'{' if named else '['}{', '.join(items)}{'}' if named else ']'}")
    listed = "\n".join(f"    {function}," for function in functions)
    return f"\n{STRIDED}\nEXAMPLES = [\n{listed}\n]\n"


def as_solution(target: Target, name: str, files: Mapping[str, str]) -> Solution:
    """Wrap the files as a solution of the whole model."""
    manifests = [text for path, text in files.items() if Path(path).name == MANIFEST]
    written_in = {json.loads(text)["language"] for text in manifests}
    return Solution(
        name=name,
        definition=target.definition.hash,
        author="stitch",
        spec=BuildSpec(language=next((name for name in languages.names() if name in written_in), "python")),
        sources=tuple(SourceFile(path=path, content=text) for path, text in sorted(files.items())),
        description=f"the whole model: {name}",
    )
