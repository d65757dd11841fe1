"""Solutions are compiled ahead of their evaluation, from several threads, into the cache that it reads."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agentforge.referee import Builder
from agentforge.schema import Solution
from agentforge.testing.language import make_solution

from ..judging import quick_referee

KERNEL = 'extern "C" void fill(float* out, long n) { for (long i = 0; i < n; i++) out[i] = %s; }\n'
MODEL = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def solution(value: str) -> Solution:
    return make_solution("cpp", {"kernel.cpp": KERNEL % value, "model_new.py": MODEL})


def test_built_beside_each_other_and_found_again(tmp_path: Path) -> None:
    several = [solution(f"{n}.0f") for n in range(3)]
    with quick_referee(tmp_path) as referee:
        assert isinstance(referee, Builder)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(referee.build, [*several, solution("what does not compile")]))
        for one in several:
            folder, result = referee._candidate_builder().build(one)
            assert result.cached
            shutil.rmtree(folder)
        assert not list(Path(str(referee._folder)).glob("solution-*")), "nothing is left behind"
