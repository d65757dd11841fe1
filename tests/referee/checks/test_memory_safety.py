from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentforge.config import RefereeSettings
from agentforge.languages.cpp.sanitizers.sanitizers import MEMORY, RACES
from agentforge.referee import EvaluationRequest, Referee
from agentforge.schema import Definition, Evaluation, EvaluationStatus, Level
from agentforge.testing.language import make_solution

from ..judging import DEVICE, WORKLOAD, problem

DEFINITION = problem("return x.sum(-1)", "torch.rand(70, 129)")
ENTRY = """
import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0])
        lib.row_sum(x, out, x.shape[0], x.shape[1])
        return out
"""
KERNEL = """#include <cstdint>
#include <cstdlib>
static double cell[8];
static int64_t finished;
extern "C" void row_sum(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; ++r) {
        double s = 0;
        for (int64_t c = 0; c < cols; ++c) s += x[r * cols + c];
        %s
    }
}
"""
RIGHT = """out[r] = (float)s;
#pragma omp atomic
        finished += 1;"""
RARE_RACE = "cell[r % 8] = s; out[r] = (float)s;"
ONE_PAST = "float* own = (float*)malloc(4); own[1] = (float)s; out[r] = own[1]; free(own);"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (MEMORY.available() and RACES.available()), reason="no sanitizers here"),
]


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    settings = RefereeSettings(
        compile_baseline=False, full_blocks=4, full_seconds=0.2, task_seconds=0.0, threads=2
    )
    with Referee(settings, device=DEVICE, cache=tmp_path_factory.mktemp("cache")) as made:
        yield made


def judged(referee: Referee, line: str, definition: Definition = DEFINITION) -> Evaluation:
    files = {"model_new.py": ENTRY, "kernel.cpp": KERNEL % line}
    solution = make_solution("cpp", files, definition=definition.hash)
    return referee.evaluate(EvaluationRequest(definition, [WORKLOAD], solution, level=Level.FULL))


def stages(evaluation: Evaluation) -> dict[str, str]:
    return {s.name: s.detail for s in evaluation.stages}


def test_a_right_kernel_is_looked_at_and_not_punished(referee):
    evaluation = judged(referee, RIGHT)
    assert evaluation.status is EvaluationStatus.PASSED, evaluation.reasons
    found = stages(evaluation)
    assert "the workload" in found["memory"]
    assert "the workload" in found["races"]
    assert found["thread counts"] == "right with 1 and 5 threads"
    assert not evaluation.diagnostics


def test_a_race_that_never_shows_is_found(referee):
    evaluation = judged(referee, RARE_RACE)
    assert evaluation.status is EvaluationStatus.NONDETERMINISTIC
    assert evaluation.reasons[0].startswith("kernel.cpp:10: data race")
    assert [d.line for d in evaluation.diagnostics] == [10]


def test_a_write_past_the_end_that_spoils_nothing_is_found(referee):
    evaluation = judged(referee, ONE_PAST)
    assert evaluation.status is EvaluationStatus.CRASHED
    assert "kernel.cpp:10: writes 4 bytes" in evaluation.reasons[0]
