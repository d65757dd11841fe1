"""C++/OpenMP kernels behind `extern "C"`, compiled without torch's headers and called through ctypes."""

from .diagnostics import parse_diagnostics
from .language import RUNTIME_FILE, Cpp

__all__ = ["RUNTIME_FILE", "Cpp", "parse_diagnostics"]
