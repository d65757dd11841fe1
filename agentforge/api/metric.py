"""A metric that is a function of the caller's becomes a file that other processes import."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentforge.schema import Permission, UsageError, content_hash

from .kept_file import kept_file

if TYPE_CHECKING:
    from agentforge.config import Settings

Metric = Callable[[Any], Any]

_SOURCE = '''"""A metric that `agentforge.optimize` was given, by cloudpickle."""

import base64
import pickle

{name} = pickle.loads(base64.b64decode({data!r}))
'''


def permission_for(
    allow: str, metric: Metric | str | None, bound: float | str | None, settings: Settings
) -> Permission | None:
    """The permission that the caller gives; None if there is none.

    Args:
        settings: say where a function is kept.

    Raises:
        UsageError: an argument is missing, or cannot be read or sent to another process.
        MachineError: the function cannot be kept.
    """
    if metric is None or isinstance(metric, str):
        return Permission.parse(allow, metric or "", bound)
    if not callable(metric):
        raise UsageError(f'metric is a function or "file.py:function", not a {type(metric).__name__}')
    if Permission.parse(allow, "f.py:f", bound) is None:  # a mistake in the others comes first
        return None
    return Permission.parse(allow, _kept(metric, settings.home / "metrics"), bound)


def _kept(metric: Metric, folder: Path) -> str:
    import cloudpickle

    given = getattr(metric, "__name__", "")
    name = given if given.isidentifier() else "metric"
    try:
        data = base64.b64encode(cloudpickle.dumps(metric)).decode()
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise UsageError(
            f"the metric cannot be sent to another process ({type(error).__name__}: {why}): load what it "
            'needs inside it, or pass "file.py:function"'
        ) from error
    file = folder / f"{content_hash([name, data])}.py"
    with kept_file(file, "the metric") as draft:
        draft.write_text(_SOURCE.format(name=name, data=data), encoding="utf-8")
    return f"{file}:{name}"
