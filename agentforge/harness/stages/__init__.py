"""The stages of an evaluation, in the order of their cost."""

from ._base import Context, Stage
from .backward import Gradients
from .behaviour import Aftermath, Attestation, Determinism, Mutation
from .correctness import RandomInputs, Sharpened, Smoke, Stability
from .properties import Edges, Relations, Types
from .static import StaticNotes
from .threads import Threads

__all__ = [
    "Aftermath",
    "Attestation",
    "Context",
    "Determinism",
    "Edges",
    "Gradients",
    "Mutation",
    "RandomInputs",
    "Relations",
    "Sharpened",
    "Smoke",
    "Stability",
    "Stage",
    "StaticNotes",
    "Threads",
    "Types",
]
