"""The referee's modes import no compiler, and one that is there stays out of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
import torch
from agentforge.referee.workers.dispatch_mode import DispatchMode

class Names(DispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func._schema.name)
        return func(*args, **(kwargs or {}))

def seen():
    with Names() as names:
        torch.ones(2).neg()
    return names.seen

assert seen() == ["aten::ones", "aten::neg"]
assert "torch._dynamo" not in sys.modules
compiled = torch.compile(lambda x: x.neg() + 1, backend="eager")
assert torch.equal(compiled(torch.ones(2)), torch.zeros(2))
with Names() as names:
    assert torch.equal(compiled(torch.ones(3)), torch.zeros(3))
assert "aten::neg" in names.seen
assert seen() == ["aten::ones", "aten::neg"]
assert Names.__torch_dispatch__ is Names._not_compiled
print("right")
"""


@pytest.mark.slow
def test_a_mode_imports_no_compiler_and_stays_out_of_one() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.stdout == "right\n", done.stderr
