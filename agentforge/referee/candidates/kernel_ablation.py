"""Kernel ablation: exported functions of shared objects, jitted functions and CUDA kernels return at once.

If the answer stays right, the kernels did not compute it, whatever the candidate's process claims.
"""

from __future__ import annotations

import ast
import struct
from pathlib import Path

from agentforge.languages import AblatableLanguage, languages
from agentforge.languages.cuda.source import kernel_bodies
from agentforge.languages.untrusted import regular_files
from agentforge.schema import NOT_PYTHON

from .elf import SharedObject

_RETURN = {62: b"\xc3", 183: b"\xc0\x03\x5f\xd6"}
"""Return instruction by ELF machine: x86-64, AArch64."""
_CHOOSE_NOTHING = {
    62: b"\x48\x8d\x05\x01\x00\x00\x00\xc3\xc3",
    183: b"\x40\x00\x00\x10" + 2 * _RETURN[183],
}
"""Replaces a resolver of an indirect function: returns the address of a return instruction, which follows."""
_STT_FUNC, _STT_GNU_IFUNC = 2, 10
_LINKERS = ("_init", "_fini")


def disable_kernels(folder: Path, language: str = "python") -> list[str]:
    """Make all kernels of a built solution return at once, in place.

    Returns:
        Names of the kernels.
    """
    names = [name for path in regular_files(folder, "*.so") for name in disable_exported(path)]
    names += [name for path in regular_files(folder, "*.py") for name in disable_jitted(path)]
    names += [name for path in regular_files(folder, "*.cu") for name in disable_cuda(path)]
    implementation = languages.create(language)
    if isinstance(implementation, AblatableLanguage):
        names += implementation.empty_kernels(folder)
    return names


def disable_cuda(path: Path) -> list[str]:
    """Make every kernel of a CUDA source return at once.

    Args:
        path: changed in place; if it was built for the emulator, its shared object is changed.

    Returns:
        Names of the kernels.
    """
    if any(path.parent.glob(f"{path.stem}.*.cpu.so")):
        return []
    text = path.read_text(encoding="utf-8", errors="surrogatepass")
    places = kernel_bodies(text)
    for place in sorted(places.values(), reverse=True):
        text = f"{text[:place]} return; {text[place:]}"
    if places:
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return list(places)


def disable_jitted(path: Path) -> list[str]:
    """Make every `@triton.jit` function of a Python file return at once.

    Args:
        path: changed in place if it has such functions.

    Returns:
        Names of the functions.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _is_jitted(n)]
        for function in found:
            function.body = [ast.Return()]
        if found:
            path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    except (OSError, *NOT_PYTHON):
        return []
    return [function.name for function in found]


def _is_jitted(function: ast.FunctionDef) -> bool:
    names = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
    return any(name.split(".")[-1] == "jit" and not name.startswith("torch.") for name in names)


def disable_exported(path: Path) -> list[str]:
    """Make every exported C function of a shared object return at once.

    Args:
        path: 64-bit little-endian ELF file, changed in place.

    Returns:
        Names of the functions; empty if the file has an unknown format.
    """
    data = bytearray(path.read_bytes())
    try:
        names = _patch(data)
    except (struct.error, IndexError, ValueError):
        return []
    path.write_bytes(data)
    return names


def _patch(data: bytearray) -> list[str]:
    file = SharedObject(data)
    if file.machine not in _RETURN:
        return []
    instructions = {_STT_FUNC: _RETURN[file.machine], _STT_GNU_IFUNC: _CHOOSE_NOTHING[file.machine]}
    found = {
        symbol.name: (file.offset(symbol.address), instructions[symbol.kind])
        for symbol in file.symbols()
        if symbol.kind in instructions and symbol.defined and symbol.name not in _LINKERS
    }
    # Mangled and reserved names stay unchanged, unless no other function can be called from outside.
    names = [name for name in found if not name.startswith(("_Z", "__"))] or list(found)
    for place, instruction in map(found.__getitem__, names):
        data[place : place + len(instruction)] = instruction
    return names
