"""The tutorials work as the pages have them.

A block with a title is a file. A `console` block is run line by line (`$ agentforge ...`); its other lines
must occur in the output. A `python` block is a script. A comment in front of a block gives the exit codes
that are right, `<!-- test: exit 0 or 1 -->`; `<!-- test: skip -->` says that another test has the same run.
Runs leave out what `tests/quick.py` names, and have smaller inputs.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agents.llm.scene import Script
from tests.llm.server import LLMServer

DOCS = Path(__file__).resolve().parents[2] / "docs"
ENDPOINT = "http://127.0.0.1:8000/v1"
_BLOCK = re.compile(
    r"(?:<!-- test: (?P<test>[^>]*) -->\n)?"
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)

QUICKER = {
    "AGENTFORGE_BUDGET__ATTEMPTS": "1",
    "AGENTFORGE_REFEREE__TASK_SECONDS": "0",
    "AGENTFORGE_REFEREE__COMPILE_BASELINE": "false",
    "AGENTFORGE_REFEREE__FULL_BLOCKS": "4",
    "AGENTFORGE_REFEREE__FULL_SECONDS": "0.3",
    "AGENTFORGE_REFEREE__QUICK_BLOCKS": "2",
    "AGENTFORGE_REFEREE__QUICK_SECONDS": "0.2",
}
"""Settings that shorten runs; the pages work without them too."""
SMALLER = (("2048,256", "64,256"), ("2048, 256", "64, 256"), ("512, 1024", "64, 1024"))
"""Shapes of inputs, and those that take a quarter of the time."""

KERNEL = """\
<file path="kernel.cpp">
#include <cmath>
#include <cstdint>
extern "C" void rms(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; r++) {
        const float* in = x + r * cols;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < cols; c++) sum += in[c] * in[c];
        const float scale = 1 / std::sqrt(sum / cols + 1e-6f);
#pragma omp simd
        for (int64_t c = 0; c < cols; c++) out[r * cols + c] = in[c] * scale;
    }
}
</file>
<file path="model_new.py">
import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        lib.rms(x, out, x.shape[0], x.shape[1])
        return out
</file>
"""


@dataclass(frozen=True)
class Block:
    language: str
    title: str
    body: str
    codes: frozenset[int]


def blocks(page: str) -> Iterator[Block]:
    for match in _BLOCK.finditer((DOCS / page).read_text()):
        marks = match["test"] or ""
        if marks == "skip":
            continue
        codes = frozenset(map(int, re.findall(r"\d", marks))) or frozenset({0})
        yield Block(match["language"], match["title"] or "", match["body"], codes)


class Reader:
    """Somebody who follows a tutorial in an empty folder."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self.folder, self.endpoint = folder, endpoint
        self.ran = 0
        self.environment = os.environ | {
            "AGENTFORGE_HOME": str(folder / ".home"),
            "AGENTFORGE_LLM_API_KEY": "sk-tutorial",
            **QUICKER,
            "PYTHONPATH": os.pathsep.join([str(folder), str(DOCS.parent), os.environ.get("PYTHONPATH", "")]),
        }

    def follow(self, block: Block) -> None:
        body = block.body.replace(ENDPOINT, self.endpoint)
        for large, small in SMALLER:
            body = body.replace(large, small)
        if block.title:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
        elif block.language == "console":
            self._console(body, block.codes)
        elif block.language == "python":
            before = "from tests.quick import leave_out\nleave_out()\n" if "agentforge" in body else ""
            self._run([sys.executable, "-c", before + body], block.codes)

    def _console(self, body: str, codes: frozenset[int]) -> None:
        output = ""
        for line in body.splitlines():
            if not line.startswith("$ "):
                assert line in output
                continue
            program, *arguments = shlex.split(line[2:])
            if program == "agentforge":
                output = self._run([sys.executable, "-m", "tests.quick", *arguments], codes)

    def _run(self, command: list[str], codes: frozenset[int]) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=900
        )
        assert done.returncode in codes, f"{command} gave {done.returncode}:\n{done.stdout}\n{done.stderr}"
        self.ran += 1
        return done.stdout + done.stderr


PAGES = (
    "quickstart.md",
    "tutorials/your-model.md",
    "tutorials/your-kernel.md",
    "tutorials/language-model.md",
)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with LLMServer(Script(deque([KERNEL, KERNEL]))) as server:
        yield Reader(tmp_path, server.url)


@pytest.mark.slow
@pytest.mark.timeout(1800)
class WholePage:
    """A class per page, so that xdist can run pages side by side."""

    page = ""

    def test_it_works_from_the_first_line_to_the_last(self, reader: Reader) -> None:
        for block in blocks(self.page):
            reader.follow(block)
        assert reader.ran > 1


class TestQuickstart(WholePage):
    page = PAGES[0]


class TestYourModel(WholePage):
    page = PAGES[1]


class TestYourKernel(WholePage):
    page = PAGES[2]


class TestLanguageModel(WholePage):
    page = PAGES[3]
