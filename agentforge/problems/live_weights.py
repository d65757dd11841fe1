"""The file that has the weights of a live module."""

from __future__ import annotations

import ast
import os
import re

from agentforge.schema import Target, UsageError

_FILE = re.compile(r"^_WEIGHTS = Path\((.+)\)$", re.MULTILINE)


def check_weights(target: Target) -> None:
    """Refuse a live module whose weights are gone: its source would draw others.

    Raises:
        UsageError: they cannot be read here.
    """
    found = _FILE.search(target.definition.reference) if target.origin.startswith("live:") else None
    if found is not None and not os.access(file := ast.literal_eval(found[1]), os.R_OK):
        raise UsageError(
            f"{target.name} needs its weights, and {file} cannot be read: give the model again, to "
            "agentforge.optimize(model, inputs), or of a finished run to agentforge.resume(run, model=model)"
        )
