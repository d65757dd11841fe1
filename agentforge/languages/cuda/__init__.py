"""CUDA C++: compiled by NVRTC, launched on a GPU, or run by an emulator where there is none."""

from .ahead import compilers
from .language import Cuda

__all__ = ["Cuda", "compilers"]
