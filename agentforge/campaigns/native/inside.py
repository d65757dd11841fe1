"""Two programs for the sandbox: a solution's answer to inputs of the referee's, and a task's checker on it.

`python -m agentforge.campaigns.native.inside answer REQUESTS OUTPUT` runs the solution, and
`... check REQUESTS DEFINITION OUTPUT VERDICT TOLERANCE` the task's code, which never saw the solution.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from agentforge.problems.kernelbench import load_problem
from agentforge.referee.profiling_bridge.main import INPUTS, REQUESTS, Profiled
from agentforge.referee.workers.arguments import bind
from agentforge.referee.workers.memory.shared_memory import Block
from agentforge.referee.workers.runner import runner_for
from agentforge.schema import Definition

from .tolerance import SuiteTolerance

MOST_WORDS = 500
"""Characters of a checker's message that are kept."""


def answer(requests: Path, output: Path) -> None:
    """Call the solution once and write its output."""
    found = Profiled(requests).call()()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    torch.save(_plain(found), output)


def check(requests: Path, definition: Path, output: Path, verdict: Path, tolerance: Path) -> None:
    """Call the reference's `native_check` with the same inputs and that output; write what it says.

    Args:
        tolerance: JSON of a `SuiteTolerance`, which compares with the reference's output instead, or empty.
    """
    load, workload = json.loads((requests / REQUESTS).read_text())
    torch.set_num_threads(load["threads"])
    torch.set_grad_enabled(False)
    problem = load_problem(Definition.model_validate_json(definition.read_text()))
    runner = runner_for(load["device"], events=load["events"])
    content = requests / INPUTS
    block = Block(os.open(content, os.O_RDONLY), content.stat().st_size, writable=False)
    args, kwargs = bind(workload["arguments"], block, 0)
    received = runner.bring(torch.load(output, weights_only=True))
    model = problem.build(load["seed"])
    if not (bounds := tolerance.read_text()):
        given = [runner.bring(tensor) for tensor in args]
        accepted, words = verdict_of(problem.module.native_check(model, given, received))
    else:
        # The block cannot be written to, and a reference may write to its inputs.
        args, kwargs = tree_map_only(torch.Tensor, torch.clone, runner.bring((args, kwargs)))
        both = (tree_leaves(_plain(found)) for found in (received, runner.place(model)(*args, **kwargs)))
        judge = SuiteTolerance.model_validate_json(bounds).judge
        accepted, words = judge(*([torch.as_tensor(leaf) for leaf in leaves] for leaves in both))
    verdict.write_text(json.dumps({"accepted": accepted, "message": words[:MOST_WORDS]}))


def verdict_of(said: Any) -> tuple[bool, str]:
    """What a checker returned: `(good, message)`, or only the complaint, empty if there is none."""
    if isinstance(said, tuple) and len(said) == 2:
        return bool(said[0]), str(said[1] or "")
    if isinstance(said, bool):
        return said, ""
    words = " ".join(map(str, said)) if isinstance(said, list) else str(said or "")
    return not words, words


def _plain(value: Any) -> Any:
    """An output of plain tensors and containers, on the CPU."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def main(argv: list[str]) -> None:
    """Run one of the two programs."""
    paths = map(Path, argv[2:])
    if argv[1] == "answer":
        answer(*paths)
    else:
        check(*paths)


if __name__ == "__main__":
    main(sys.argv)
