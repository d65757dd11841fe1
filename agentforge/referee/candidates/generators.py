"""Generators of random numbers that a whole process shares: who seeds one changes what all others draw."""

from __future__ import annotations

import pickle
import random
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch


class _Generator(NamedTuple):
    name: str
    get: Callable[[], Any]
    put: Callable[[Any], object]
    seed: Callable[[int], object]


def _generators() -> Iterator[_Generator]:
    """torch's of each device that is used, Python's, and numpy's if it is loaded."""
    for each in (torch.default_generator, *torch.cuda.default_generators):
        yield _Generator(f"torch ({each.device})", each.get_state, each.set_state, each.manual_seed)
    yield _Generator("random", random.getstate, random.setstate, random.seed)
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    if numpy is not None:
        yield _Generator("numpy.random", partial(numpy.get_state, legacy=False), numpy.set_state, numpy.seed)


def _bits(state: Any) -> bytes:
    return bytes(state.numpy()) if isinstance(state, torch.Tensor) else pickle.dumps(state)


@contextmanager
def shared_generators() -> Iterator[list[str]]:
    """Watches the shared generators.

    Each begins at random, so that a seed that is the same in each call shows too. Afterwards all go on from
    where they were.

    Yields:
        A list, to which the end of the block adds the names of those that have another state than before.
    """
    changed: list[str] = []
    watched = list(_generators())
    earlier = [each.get() for each in watched]
    try:
        for each in watched:
            each.seed(secrets.randbits(32))
        begun = [_bits(each.get()) for each in watched]
        yield changed
        changed += [each.name for each, bits in zip(watched, begun, strict=True) if _bits(each.get()) != bits]
    finally:
        for each, state in zip(watched, earlier, strict=True):
            each.put(state)
