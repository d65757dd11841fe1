"""Compiles launches for an H100 and reads what their machine code says of memory: a line of JSON for each.

`python -m tests.kernels.machine_code < LAUNCHES`: a JSON list of kernel file and launch. It needs no GPU.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import tempfile
from typing import Any

from agentforge.languages.cuda.compile.sass import _kernels
from agentforge.languages.occupancy import occupancy, target_limits

TARGET = "sm_90"
_BITS = (8, 8, 16, 16, 32, 64, 128, 128)
_COUNTER = re.compile(r"scf\.for .* : (i\d+) \{")
_LOAD, _STORE, _ASYNC, _TENSOR = 0x181, 0x186, 0x1AE, 0x1F0
"""LDG, STG, LDGSTS, HGMMA."""


def memory_of(code: bytes) -> dict[str, Any]:
    """Widths of accesses and asynchronous copies, and bytes that a thread asks for before it waits.

    A load names one of six barriers (bits 110 to 112 of the instruction); what needs its result waits for
    that barrier (bits 116 to 121). Instructions are gone through in the order of their addresses.
    """
    loads: list[int] = []
    stores: list[int] = []
    copies: list[int] = []
    asked = most = open_barriers = tensor = 0
    for low, high in struct.iter_unpack("<QQ", code[: len(code) // 16 * 16]):
        operation, bits = low & 0x1FF, _BITS[high >> 9 & 7]
        if high >> 52 & open_barriers:
            most, asked, open_barriers = max(most, asked), 0, 0
        if operation == _LOAD:
            loads.append(bits)
            asked += bits // 8
            barrier = high >> 46 & 7
            open_barriers |= 1 << barrier if barrier < 6 else 0
        elif operation == _STORE:
            stores.append(bits)
        elif operation == _ASYNC:
            copies.append(bits)
        tensor += operation == _TENSOR
    return {
        "loads": loads, "stores": stores, "thread_bytes": max(most, asked),
        "tensor": tensor, "copies": copies,
    }  # fmt: skip


def main() -> None:
    """Compile all, in this process."""
    os.environ["TRITON_DUMP_PTXAS_LOG"] = "1"
    from agentforge.languages.triton.compile import child as compile_child
    from agentforge.languages.triton.interpreter import fake_driver as pretended

    pretended.install()
    from . import cases

    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TRITON_CACHE_DIR"] = scratch
        for file, launch in json.load(sys.stdin):
            kernels = {k: v for k, v in vars(cases.load(file)).items() if hasattr(v, "arg_names")}
            print(json.dumps(look(compile_child, kernels, launch)), flush=True)


def look(compile_child: Any, kernels: dict[str, Any], launch: dict[str, Any]) -> dict[str, Any]:
    """What one launch compiles to."""
    fn = kernels[launch["kernel"]]
    compiled, said = compile_child.compiled(fn, launch, target_limits(TARGET).capability, kernels)
    registers = int(compile_child._USED.search(said)[1])
    threads = 32 * launch["num_warps"]
    full = occupancy(TARGET, threads=threads, registers=registers, shared_bytes=int(compiled.metadata.shared))
    ((_, code),) = _kernels(compiled.asm["cubin"])
    found = memory_of(code)
    resident = full * target_limits(TARGET).warps * 32
    spilled = int(compile_child._SPILLS.search(said)[1])
    return {
        **found, "kernel": fn.__name__, "occupancy": full, "spilled": spilled,
        "processor_bytes": found["thread_bytes"] * resident,
        "counters": _COUNTER.findall(compiled.asm["ttir"]),
    }  # fmt: skip


if __name__ == "__main__":
    main()
