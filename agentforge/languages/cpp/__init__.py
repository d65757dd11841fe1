"""C++/OpenMP kernels behind `extern "C"`, compiled without torch's headers and called through ctypes."""

from .diagnostics import parse_diagnostics
from .language import Cpp

__all__ = ["Cpp", "parse_diagnostics"]
