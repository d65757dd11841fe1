"""Which lookups by Python code find functions of others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_CODE = """
import ctypes, sys
from pathlib import Path
from agentforge.referee.candidates.lookups import Lookups
lookups = Lookups(Path(sys.argv[1]))
libc = ctypes.CDLL(None)
libc.sched_yield, libc.malloc  # one that does not exist is none
assert not hasattr(libc, "not_there")
assert lookups.foreign() == [], lookups.foreign()
import torch
torchs = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
name = "_ZN3c1010get_backtraceB5cxx11Emmb"
names = [name, "_ZN3c1011GetCPUAllocatorEv", "_ZN3c1015GetCPUAllocatorEv"]
found = [n for n in names if hasattr(torchs, n)]
del torchs
print(found, lookups.foreign())
assert found and lookups.foreign() == sorted(found)
libc.dlsym
assert "dlsym" in lookups.foreign()
"""


def test_functions_of_run_times_are_no_work_of_others_and_those_of_torch_are(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _CODE, str(tmp_path)], check=True, timeout=120)
