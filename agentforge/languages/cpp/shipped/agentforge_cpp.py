"""Call `extern "C"` C++ kernels on torch CPU tensors.

    from agentforge_cpp import load
    lib = load(__file__, "kernel.cpp")
    lib.rmsnorm(x, weight, out, rows, cols, 1e-6)

`load` uses the shared object beside the source, or builds it with g++ (`$CXX`) at first use. Each function
checks its tensors against the C++ prototype (dtype, CPU, contiguous), keeps them alive during the call and
releases the GIL. Autograd records nothing. This file needs only the standard library and torch, and ships
with the kernels.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import keyword
import math
import mmap
import os
import re
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

__all__ = ["Library", "Strided", "calls", "count", "empty", "empty_cache", "load", "reset_calls"]

VERSION = "1"
HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc", ".ipp", ".cpp")
MANIFEST = "solution.json"
FLAGS = (
    "-std=c++20",
    "-O3",
    "-march=native",
    "-fopenmp",
    "-fPIC",
    "-ffast-math",
    "-fno-finite-math-only",  # NaN and Inf keep their meaning
    "-D__FAST_MATH__",  # the previous flag removes this macro, and with it libmvec's vector exp, tanh, erf
)

# --------------------------------------------------------------------------------------- prototypes

_INTEGERS = [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_SCALARS: dict[str, Any] = {"float": ctypes.c_float, "double": ctypes.c_double, "bool": ctypes.c_bool}
_SCALARS |= {name: getattr(ctypes, f"c_{name.removesuffix('_t')}") for name in _INTEGERS}
_DTYPES: dict[str, tuple[torch.dtype, ...]] = {
    **{name: (getattr(torch, name.removesuffix("_t")),) for name in _INTEGERS},
    "float": (torch.float32,),
    "double": (torch.float64,),
    "bool": (torch.bool,),
    "uint8_t": (torch.uint8, torch.bool),
    "uint16_t": (torch.uint16, torch.bfloat16, torch.float16),  # the bits of a half
    **dict.fromkeys(("_Float16", "half", "Half"), (torch.float16,)),
    **dict.fromkeys(("__bf16", "bfloat16", "BFloat16"), (torch.bfloat16,)),
    "void": (),  # any
}
_SPELLINGS = {
    "int8_t": ("char", "signed char"),
    "uint8_t": ("unsigned char",),
    "int16_t": ("short", "short int"),
    "uint16_t": ("unsigned short", "unsigned short int"),
    "int32_t": ("int", "signed", "signed int"),
    "uint32_t": ("unsigned", "unsigned int"),
    "int64_t": ("long", "long int", "long long", "long long int", "ssize_t", "ptrdiff_t", "intptr_t"),
    "uint64_t": ("unsigned long", "unsigned long int", "unsigned long long", "size_t", "uintptr_t"),
}
_SYNONYMS = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}


class Parameter(NamedTuple):
    """One parameter: its C name, its base type in canonical spelling, and whether it is a pointer."""

    name: str
    type: str
    pointer: bool


class Prototype(NamedTuple):
    """One `extern "C"` function. `problem` says why it cannot be called, if it cannot."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]
    problem: str = ""

    def __str__(self) -> str:
        args = ", ".join(f"{p.type}{'*' if p.pointer else ''} {p.name}".rstrip() for p in self.parameters)
        return f"{self.result} {self.name}({args})"


_LEXEMES = re.compile(
    r"""//(?:[^\n\\]|\\.)*|/\*.*?(?:\*/|\Z)"""  # comments
    r"""|R"([^\s()\\"]{0,16})\(.*?(?:\)\1"|\Z)"""  # raw strings
    r"""|"(?:[^"\\\n]|\\.?)*"?|(?<!\w)'(?:[^'\\\n]|\\.?)+'?""",  # strings, characters (not 1'000)
    re.DOTALL,
)
"""What never ends goes on to the end of the line or of the text: nothing is read twice."""
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
_MACRO = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+extern[ \t]*"C"[^\n]*', re.MULTILINE)
_ATTRIBUTE = re.compile(
    r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\[\[.*?\]\]|\balignas\s*\([^()]*\)|\bnoexcept\b"
)
_NOISE = re.compile(
    r"\b(?:const|volatile|__restrict__|__restrict|restrict|register|extern|inline|struct)\b|\b(?:std|c10|at)\s*::"
)
_HEADER = re.compile(r"\A(?P<result>[\w\s:*&]+?[\s*&])(?P<name>\w+)\s*\((?P<parameters>[^()]*)\)\s*\Z")


def _lexeme(match: re.Match[str]) -> str:
    text = match.group()
    if text.startswith("/"):
        return " " + "\n" * text.count("\n")
    return text if text == '"C"' else '""'


def _type(text: str) -> tuple[str, int]:
    """Canonical base type and number of indirections."""
    depth = text.count("*") + text.count("&")
    words = " ".join(_NOISE.sub(" ", text).replace("*", " ").replace("&", " ").replace("::", " ").split())
    return _SYNONYMS.get(words, words), depth


def _parameter(text: str) -> tuple[Parameter, str]:
    text = text.split("=")[0].strip()
    array = "*" if "[" in text else ""
    text = re.sub(r"\[[^\]]*\]", "", text).strip()
    match = re.fullmatch(r"(?P<type>.*[\s*&])(?P<name>\w+)", text, re.DOTALL)
    base, depth = _type((match["type"] if match else text) + array)
    name = match["name"] if match else ""
    if match and (base == "" or (name in _SYNONYMS or name in _SCALARS or name in ("restrict", "const"))):
        base, depth, name = *_type(text + array), ""  # unnamed: `unsigned long`, `const float* __restrict`
    if match and name in ("__restrict__", "__restrict"):
        name = ""
    known = _DTYPES if depth else _SCALARS
    problem = ""
    if depth > 1 or "&" in text:
        problem = f"parameter {text!r} is a pointer to a pointer or a reference"
    elif base not in known:
        problem = f"parameter {text!r} has a type that accepts neither tensors nor numbers"
    return Parameter(name, base, depth > 0), problem


def _prototype(header: str) -> Prototype | None:
    match = _HEADER.match(" ".join(_ATTRIBUTE.sub(" ", header).split()))
    if match is None or re.search(r"\b(?:static|typedef|return|using|else)\b", match["result"]):
        return None
    pieces = [p for p in match["parameters"].split(",") if p.strip() not in ("", "void")]
    parsed = [_parameter(p) for p in pieces]
    result, depth = _type(match["result"])
    problem = next((p for _, p in parsed if p), "")
    if depth or (result != "void" and result not in _SCALARS):
        problem = problem or f"result type {match['result'].strip()!r} is not void or a number"
    return Prototype(match["name"], result, tuple(p for p, _ in parsed), problem)


def _headers(text: str, position: int) -> Iterator[str]:
    """Text before `{` or `;` of each declaration that `extern "C"` at `position` applies to."""
    block = re.compile(r"\s*\{").match(text, position)
    position = block.end() if block else position
    start, depth = position, 0
    while position < len(text):
        character = text[position]
        if character == "{":
            if depth == 0:
                yield text[start:position]
            depth += 1
        elif character == "}":
            depth -= 1
            start = position + 1
        elif character == ";" and depth == 0:
            yield text[start:position]
            start = position + 1
        if (depth < 0) or (not block and depth == 0 and character in "};"):
            return
        position += 1


def parse_prototypes(source: str) -> dict[str, Prototype]:
    """All `extern "C"` functions of a C++ source, by name, without running a preprocessor."""
    text = _LEXEMES.sub(_lexeme, source)
    macros = set(_MACRO.findall(text))
    text = _DIRECTIVE.sub("", text)
    if macros:
        text = re.sub(r"\w+", lambda word: 'extern "C"' if word[0] in macros else word[0], text)
    found: dict[str, Prototype] = {}
    for linkage in re.finditer(r'\bextern\s*"C"', text):
        for header in _headers(text, linkage.end()):
            prototype = _prototype(header)
            if prototype is not None:
                found.setdefault(prototype.name, prototype)
    return found


# -------------------------------------------------------------------------------------------- build


_INSTRUCTIONS = {
    "flags": re.compile(
        r"mmx\w*|3dnow\w*|\w*sse\w*|pni|cx8|cx16|cmov|lahf_lm|popcnt|abm|avx\w*|amx\w*|apx\w*|fma\w*|xop|f16c"
        r"|bmi[12]|tbm|movbe|adx|v?aes|v?pclmulqdq|gfni|sha\w*|sm[34]|kl|aeskle|widekl"
    ),
    "Features": re.compile(
        r"fp\w*|asimd\w*|sve\w*|sme\w*|aes|pmull\w*|sha\w*|sm[34]|crc32|atomics\w*|lse\w*|i8mm|\w*bf16|f\d+mm"
        r"|jscvt|fcma|lrcpc\w*|uscat|flagm\w*|frint|rng|mops|cssc|neon|vfp\w*|idiv\w*|half|thumb\w*"
    ),
}
"""Instruction sets among the words of a line of /proc/cpuinfo.

The other words, such as `ibpb` and `md_clear`, come and go with the kernel and the hypervisor.
"""


@lru_cache(maxsize=1)
def machine() -> str:
    """Identify the instruction set that `-march=native` compiles for."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        first = ""
    return "\n".join([os.uname().machine, *processor(first)])


def processor(text: str) -> list[str]:
    """Model and instruction sets in the text that /proc/cpuinfo has on a processor."""
    found: list[str] = []
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key in ("vendor_id", "cpu family", "model", "CPU part"):
            found.append(f"{key}: {value}")
        elif key in _INSTRUCTIONS:
            found.append(" ".join(sorted(filter(_INSTRUCTIONS[key].fullmatch, value.split()))))
    return found


def settings(source: Path) -> tuple[list[str], list[str]]:
    """Flags and dependencies in the nearest `solution.json` beside or up to four levels above `source`."""
    for folder in list(source.parents)[:4]:
        try:
            content = json.loads((folder / MANIFEST).read_text())
        except (OSError, ValueError):
            continue
        if isinstance(content, dict) and "language" in content:
            flags, dependencies = (content.get(key) for key in ("flags", "dependencies"))
            return [list(map(str, v)) if isinstance(v, list) else [] for v in (flags, dependencies)]  # type: ignore[return-value]
    return [], []


def included(source: Path) -> list[Path]:
    """`source` and the files in its folders that it includes by `#include "..."`, each once, in order."""
    seen: list[Path] = []
    queue = [source]
    while queue:
        path = queue.pop(0)
        if path in seen or not path.is_file() or (path != source and path.suffix not in HEADERS):
            continue
        seen.append(path)
        names = re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', path.read_text(errors="replace"), re.M)
        queue += [Path(os.path.normpath(path.parent / name)) for name in names if not name.startswith("/")]
    return seen


def compiler() -> str:
    """The C++ compiler: `$CXX`, else g++."""
    return os.environ.get("CXX") or "g++"


def object_name(source: Path, flags: Sequence[str], dependencies: Sequence[str]) -> str:
    """File name of the shared object, with a hash of sources, flags, machine and this module."""
    digest = hashlib.sha256()
    extra = torch.__version__ if dependencies else ""
    for part in (VERSION, machine(), extra, *FLAGS, "", *flags, "", *dependencies, ""):
        digest.update(part.encode() + b"\0")
    for path in included(source):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"{source.stem}.{digest.hexdigest()[:16]}.so"


def torch_folders(dependencies: Sequence[str]) -> tuple[list[str], list[str]]:
    """Compile and link flags of the dependencies; `torch-headers` is the only one."""
    for dependency in dependencies:
        if dependency != "torch-headers":
            raise ValueError(f"unknown dependency {dependency!r}; cpp supports: torch-headers")
    if not dependencies:
        return [], []
    root = Path(torch.__file__).parent
    includes = [root / "include", root / "include/torch/csrc/api/include"]
    libraries = ["-Wl,--as-needed", f"-L{root / 'lib'}", "-ltorch_cpu", "-lc10"]  # already loaded: no rpath
    return [f for folder in includes for f in ("-isystem", str(folder))], libraries


def commands(
    source: str, output: str, flags: Sequence[str], dependencies: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The compile and the link command.

    There are two, because g++ links crtfastmath.o if it sees `-ffast-math`, and the whole process, torch
    included, would flush denormals to zero.
    """
    link = [f for f in flags if f.startswith(("-l", "-L", "-Wl,", "-fsanitize"))]
    own = [f for f in flags if not f.startswith(("-l", "-L", "-Wl,"))]
    includes, libraries = torch_folders(dependencies)
    compiling = [compiler(), *FLAGS, *own, *includes, "-c", source, "-o", f"{output}.o"]
    linking = [compiler(), "-shared", "-fopenmp", f"{output}.o", "-o", output, *link, *libraries, "-lm"]
    return compiling, linking


def _writable_folder(preferred: Path) -> Path:
    if os.access(preferred, os.W_OK):
        return preferred
    cache = os.environ.get("XDG_CACHE_HOME")
    folder = Path(cache or tempfile.gettempdir()) / f"agentforge_cpp-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise RuntimeError(f"{folder} belongs to another user; set XDG_CACHE_HOME to your own folder")
    return folder


def _compile(source: Path, target: Path, flags: Sequence[str], dependencies: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as scratch:
        built = Path(scratch) / target.name
        for command in commands(str(source), str(built), flags, dependencies):
            try:
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            except OSError as error:
                raise RuntimeError(
                    f"{source.name} must be compiled for this machine, but {command[0]} does not run "
                    f"({error}); install g++ or set CXX"
                ) from error
            if done.returncode:
                raise RuntimeError(f"{command[0]} cannot compile {source}:\n{done.stderr[-8000:]}")
        built.replace(target)


# -------------------------------------------------------------------------------------------- calls

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_COUNTS: dict[str, int] = {}


class Strided:
    """Marks a tensor that is passed without a contiguity check; the caller also passes its strides."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def count(name: str, times: int = 1) -> None:
    """Count calls of a kernel that consists of several functions, in addition to the functions' counts."""
    _COUNTS[name] = _COUNTS.get(name, 0) + times


def calls() -> dict[str, int]:
    """Number of calls of each kernel in this process, by function name."""
    return dict(_COUNTS)


def reset_calls() -> None:
    """Reset all counts to zero."""
    for name in _COUNTS:
        _COUNTS[name] = 0


def _pointer(value: Any, prototype: Prototype, index: int) -> int | None:
    """Slow path: the address of a value that is not a plain contiguous tensor of the right dtype."""
    parameter = prototype.parameters[index]
    where = f"argument {index + 1} ({parameter.type}* {parameter.name}) of {prototype.name}"
    if value is None:
        return None
    strided = isinstance(value, Strided)
    tensor = value.tensor if strided else value
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{where} must be a torch.Tensor or None, not {type(value).__name__}")
    allowed = _DTYPES[parameter.type]
    if allowed and tensor.dtype not in allowed:
        names = " or ".join(str(d) for d in allowed)
        raise TypeError(f"{where} must be {names}, not {tensor.dtype}")
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise TypeError(f"{where} must be a dense CPU tensor, not {tensor.layout} on {tensor.device}")
    if tensor.is_neg() or tensor.is_conj():
        raise TypeError(f"{where} is a lazy negative or conjugate; call resolve_neg().resolve_conj() first")
    if not (strided or tensor.is_contiguous()):
        raise ValueError(
            f"{where} is not contiguous (shape {tuple(tensor.shape)}, strides {tensor.stride()}); "
            "call contiguous(), or wrap it in Strided and pass its strides"
        )
    if tensor.numel() and not tensor.data_ptr():
        raise TypeError(f"{where} has no memory (a {type(tensor).__name__}); kernels need real tensors")
    return tensor.data_ptr()


def _integer(value: Any, prototype: Prototype, index: int) -> int:
    """Slow path: the value of an integer that is not a plain int in range."""
    parameter = prototype.parameters[index]
    kind = _SCALARS[parameter.type]
    where = f"argument {index + 1} ({parameter.type} {parameter.name}) of {prototype.name}"
    if isinstance(value, torch.Tensor) or not hasattr(value, "__index__"):
        raise TypeError(f"{where} must be an int, not {type(value).__name__}")
    number = value.__index__()
    if kind(number).value != number:
        raise OverflowError(f"{where} cannot represent {number}")
    return int(number)


def _limits(kind: str) -> tuple[int, int]:
    if kind == "bool":
        return 0, 1
    bits = 8 * ctypes.sizeof(_SCALARS[kind])
    return (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class _Thread(threading.local):
    """The number of OpenMP's threads belongs to the calling thread.

    torch sets it when that thread first runs an operator or asks for the number; a kernel may come before.
    """

    def __init__(self) -> None:  # once in each thread
        torch.get_num_threads()
        self.ready = True


_THREAD = _Thread()


def _caller(function: Any, prototype: Prototype) -> Callable[..., Any]:
    """A Python function with the prototype's checks unrolled: loops would cost microseconds."""
    names: list[str] = []
    body: list[str] = []
    passed: list[str] = []
    scope: dict[str, Any] = {"_f": function, "_n": _COUNTS, "_p": prototype, "_pointer": _pointer}
    scope |= {"_t": _THREAD, "_integer": _integer, "_plain": _PLAIN, "_error": ctypes.ArgumentError}
    for index, parameter in enumerate(prototype.parameters):
        name = parameter.name
        if not name or keyword.iskeyword(name) or name.startswith("_") or name in names:
            name = f"arg{index}_"
        names.append(name)
        if parameter.pointer:
            allowed = _DTYPES[parameter.type]
            scope[f"_d{index}"] = allowed[0] if len(allowed) == 1 else allowed
            test = f"{name}.dtype {'is' if len(allowed) == 1 else 'in'} _d{index} and " if allowed else ""
            test += f"not {name}.is_conj() and " if not allowed else ""
            test += f"not {name}.is_neg() and " if parameter.type not in _INTEGERS else ""
            body.append(
                f"    _a{index} = {name}.__class__ in _plain and {test}{name}.is_cpu and "
                f"{name}.is_contiguous() and {name}.data_ptr() or _pointer({name}, _p, {index})"
            )
            passed.append(f"_a{index}")
        elif parameter.type in ("float", "double"):
            passed.append(name)
        else:
            low, high = _limits(parameter.type)
            body.append(
                f"    if {name}.__class__ is not int or not {low} <= {name} <= {high}: "
                f"{name} = _integer({name}, _p, {index})"
            )
            passed.append(name)
    body.append(f"    _n[{prototype.name!r}] += 1; _t.ready")
    body.append(f"    try: return _f({', '.join(passed)})")
    body.append("    except _error as error: raise TypeError(f'{_p}: {error}') from None")
    exec("\n".join([f"def _call({', '.join(names)}):", *body]), scope)
    caller: Callable[..., Any] = scope["_call"]
    caller.__name__, caller.__doc__ = prototype.name, str(prototype)
    return caller


class Library:
    """The `extern "C"` functions of one source file as attributes; see `load`."""

    def __init__(self, source: Path, path: Path) -> None:
        self._source = source
        self._path = path
        self._prototypes = parse_prototypes(source.read_text())
        self._handle = ctypes.CDLL(str(path))
        for name, prototype in self._prototypes.items():
            if prototype.problem or not hasattr(self._handle, name):
                continue
            function = self._handle[name]
            kinds = [ctypes.c_void_p if p.pointer else _SCALARS[p.type] for p in prototype.parameters]
            function.argtypes = kinds
            function.restype = None if prototype.result == "void" else _SCALARS[prototype.result]
            _COUNTS.setdefault(name, 0)
            setattr(self, name, _caller(function, prototype))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        prototypes: dict[str, Prototype] = self.__dict__.get("_prototypes", {})
        if name in prototypes:
            why = prototypes[name].problem or "it is declared but not defined"
            raise AttributeError(f"{name} cannot be called from Python: {why}")
        known = ", ".join(prototypes) or "none"
        raise AttributeError(f'{self._source.name} has no extern "C" function {name!r}; it has: {known}')


_LIBRARIES: dict[Path, Library] = {}


def load(beside: str, name: str, *, flags: Iterable[str] = (), dependencies: Iterable[str] = ()) -> Library:
    """Load the functions of a C++ source; built with g++ if its shared object is missing.

    Args:
        beside: `__file__` of the caller.
        name: the source's path relative to the caller's folder.
        flags: compiler flags in addition to those of the nearest `solution.json`.
        dependencies: likewise, for example `torch-headers`.

    Raises:
        FileNotFoundError: the source does not exist.
        RuntimeError: it does not compile, or there is no compiler; the message contains g++'s output.
    """
    source = Path(beside).absolute().parent / name
    if not source.is_file():
        raise FileNotFoundError(f"no kernel source {source}")
    found_flags, found_dependencies = settings(source)
    all_flags = (*found_flags, *flags)
    all_dependencies = (*found_dependencies, *dependencies)
    file = object_name(source, all_flags, all_dependencies)
    path = source.parent / file
    if not path.is_file():
        path = _writable_folder(source.parent) / file
        if not path.is_file():
            _compile(source, path, all_flags, all_dependencies)
    if path not in _LIBRARIES:
        _LIBRARIES[path] = Library(source, path)
    return _LIBRARIES[path]


# ------------------------------------------------------------------------------------ memory

_LARGE = 16 << 20
_MAX_IDLE = 1 << 30
_IDLE: dict[int, list[mmap.mmap]] = {}
"""Memory of freed large tensors, by size."""


def empty(shape: Sequence[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """`torch.empty`, with a caching allocator for large tensors.

    The C library returns a large tensor's memory to the system when it is freed, so each call would write to
    new pages that the system must clear first. That takes longer than many kernels. Freed memory is therefore
    kept for the next tensor of its size, up to 1 GiB, in huge pages if available.
    """
    shape = tuple(shape)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < _LARGE:
        return torch.empty(shape, dtype=dtype)
    try:
        memory = _IDLE[nbytes].pop()
    except (KeyError, IndexError):
        memory = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError, AttributeError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    # Lives as long as the tensor's storage, which may outlive the tensor.
    lease = (ctypes.c_char * nbytes).from_buffer(memory)
    weakref.finalize(lease, _take_back, nbytes, memory).atexit = False
    return torch.frombuffer(lease, dtype=dtype).view(shape)


def _take_back(nbytes: int, memory: mmap.mmap) -> None:
    if sum(size * len(idle) for size, idle in list(_IDLE.items())) + nbytes <= _MAX_IDLE:
        _IDLE.setdefault(nbytes, []).append(memory)


def empty_cache() -> None:
    """Return the kept memory to the system."""
    _IDLE.clear()
