"""Sentences that name options of the command line, in the words of a function's arguments."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from agentforge.schema import AgentForgeError

P = ParamSpec("P")
R = TypeVar("R")


def naming_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose errors write `device` for `--device` if that is one of its arguments."""
    names = {name.replace("_", "-"): name for name in inspect.signature(function).parameters}
    option = re.compile(rf"--({'|'.join(names)})(?![\w-])")

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except AgentForgeError as error:
            said = option.sub(lambda found: f"`{names[found[1]]}`", str(error))
            error.args = (said, *error.args[1:])
            raise

    return call
