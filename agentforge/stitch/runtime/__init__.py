"""What an artifact runs on: puts stitched forwards with their kernels into a model.

Ships unchanged inside every artifact and imports torch and the standard library only.

A stitched unit is a module whose class was swapped for a subclass of its own. The subclass' `forward`
runs generated straight-line code when, and only when, the call is one that the code was generated for:
the captured shapes, dtypes, strides and device, no gradients, no autocast, eval mode, no hooks inside,
weights laid out as they were. Every other call runs the original forward. Weights are read from the
module at each call, so in-place updates and `load_state_dict` take effect at once.
"""

from .artifact import Artifact

__all__ = ["Artifact"]
