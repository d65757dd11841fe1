"""Stitching: install verified kernels in the model, prove that they run, and write an importable artifact."""

from .files import Mode
from .stitch import StitchedArtifact, stitch
from .trial import Forecast

__all__ = ["Forecast", "Mode", "StitchedArtifact", "stitch"]
