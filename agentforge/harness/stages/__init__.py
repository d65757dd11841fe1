"""The stages of an evaluation, in the order of their cost."""

from ._base import Context, Stage
from .behaviour import Aftermath, Attestation, Determinism, Mutation
from .correctness import RandomInputs, Sharpened, Smoke, Stability
from .static import StaticNotes
from .threads import Threads

__all__ = [
    "Aftermath",
    "Attestation",
    "Context",
    "Determinism",
    "Mutation",
    "RandomInputs",
    "Sharpened",
    "Smoke",
    "Stability",
    "Stage",
    "StaticNotes",
    "Threads",
]
