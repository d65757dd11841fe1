"""Stitching: solutions go back into the model, with dispatch, proof and an artifact to import."""

from .files import Mode
from .select import Evaluator
from .stitch import Artifact, stitch

__all__ = ["Artifact", "Evaluator", "Mode", "stitch"]
