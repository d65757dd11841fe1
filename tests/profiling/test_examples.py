from __future__ import annotations

from pathlib import Path

import torch

from agentforge.problems.describe import describe_arguments
from agentforge.problems.kernelbench import load_problem
from agentforge.profiling.examples import examples_of, expanded_notes
from agentforge.schema import Definition, Workload
from tests.stitch.making import stitch_in_process

SOURCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, x, mask):
        return self.norm(torch.tanh(x) * mask + mask)

def get_inputs():
    return [torch.randn(4, 16), torch.rand(4, 1).expand(4, 16)]

def get_init_inputs():
    return []
"""


def test_an_expanded_input_is_dense_as_the_referee_passes_it(tmp_path: Path) -> None:
    problem = load_problem(Definition(name="small", op_type="model", reference=SOURCE))
    args, kwargs = problem.inputs(0)
    assert args[1].stride() == (1, 0)
    workload = Workload(name="w", source="reference", inputs=describe_arguments(["x", "mask"], args, kwargs))
    (example,) = examples_of(problem, [workload], 0, torch.device("cpu"))
    assert [t.stride() for t in example.args] == [(16, 1), (16, 1)]
    assert torch.equal(example.args[1], args[1])
    (note,) = expanded_notes([workload])
    assert note.startswith("input mask is expanded")
    stitched = stitch_in_process(SOURCE, tmp_path)
    fast = stitched.package.optimize(stitched.model())
    with torch.inference_mode():
        fast(args[0], args[1].contiguous())
    assert sum(stitched.package.calls().values()) > 0
