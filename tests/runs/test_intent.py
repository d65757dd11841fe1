"""Words become a reference that the referee could use; a blind or unsafe one is sent back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from agentforge.agents import authors
from agentforge.agents.llm.author import objections
from agentforge.config import Settings, load_settings
from agentforge.runs.kinds import intent
from agentforge.runs.pipeline import RunPipeline
from agentforge.schema import TargetError, UsageError
from agentforge.store import Store
from tests.cli.conftest import Run, home, run
from tests.llm.server import LLMServer, Reply

from .test_execution import CPU

__all__ = ["home", "run"]

WORDS = "fused masked softmax over the last dimension, fp32 and bf16"
GOOD = """\
import torch

dtypes = ("bfloat16",)


class Model(torch.nn.Module):
    def forward(self, x, mask):
        return torch.softmax(x.masked_fill(mask, -1e9), dim=-1)


def get_inputs():
    return [torch.randn(64, 515), torch.rand(64, 515) < 0.3]


def get_init_inputs():
    return []
"""
BLIND = GOOD.replace("torch.softmax(x.masked_fill(mask, -1e9), dim=-1)", "torch.zeros_like(x)")
CHANGING = GOOD.replace("masked_fill", "masked_fill_")
WRONG = GOOD.replace("masked_fill(mask, -1e9)", "masked_fill(mask)")
UNSAFE = "import os\n" + GOOD


def file(source: str) -> Reply:
    return Reply(f"FILE: reference.py\n```python\n{source}```\n")


@pytest.fixture
def no_stitching(monkeypatch: pytest.MonkeyPatch, known_roofline: None, no_slow_parts: None) -> None:
    monkeypatch.setattr(RunPipeline, "stitch", lambda *_: None)


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


def prompts(server: LLMServer) -> list[str]:
    return [json.dumps(seen.body) for seen in server.seen]


@pytest.mark.parametrize("agents", [(), ("--llm", "playbook")])
def test_without_a_model_it_says_what_to_do(run: Run, agents: tuple[str, ...]) -> None:
    answer = run("optimize", "--intent", WORDS, *agents, "--device", "cpu")
    assert answer.code == 2
    assert "--llm anthropic:MODEL" in answer.err
    assert "write ref.py yourself" in answer.err


def test_an_author_of_a_plug_in_needs_no_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    start, settings = intent.IntentStart(WORDS), load_settings(["search.coder=scribe"])
    with pytest.raises(UsageError, match="needs a language model"):
        start.check(settings, CPU)
    monkeypatch.setitem(authors._builtin, "scribe", "a.package:Scribe")
    start.check(settings, CPU)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (UNSAFE, "import os"),
        (GOOD.replace("return []", "return eval('[]')"), "eval"),
        (GOOD.replace("return []", "return torch.load('x')"), ".load"),
        (GOOD.replace("return []", "return [].__class__"), "__class__"),
        (GOOD.replace("def get_inputs", "def inputs"), "no get_inputs"),
        ("def (", "not Python"),
        ("from torch.utils import cpp_extension\n" + GOOD, "from torch.utils"),
        *[
            (
                f"{imports}\n" + GOOD.replace("return []", f"return [{expression}]"),
                expression.partition("(")[0],
            )
            for imports, expression in (
                ("", "torch.serialization.os.system('id')"),
                ("import torch as t", "t.serialization.os.system('id')"),
                ("import torch.nn.functional as F", "F.importlib.import_module('os')"),
                ("from torch.nn import functional", "functional.np.fromfile('x')"),
                ("from torch import nn", "nn.functional.torch.os.getcwd()"),
                ("", "torch.PyTorchFileReader('x')"),
                ("", "torch.FloatStorage('x')"),
                ("", "torch.import_ir_module('x')"),
                ("", "torch.ops.load_library('x')"),
                ("", "torch.hub.list('x')"),
                ("", "torch.compiler.sys()"),
                ("", "torch.no_such_operator(1)"),
            )
        ],
        ("import torch as t\n" + GOOD.replace("return []", "return t.load('x')"), ".load"),
        (GOOD.replace("return []", "a = torch\n    return a.os.system('id')"), "torch as a value"),
        (GOOD.replace("return []", "a = torch.nn\n    return a.modules.os"), "torch.nn"),
        (GOOD.replace("return []", "torch = 1\n    return []"), "torch for something else"),
        (GOOD.replace("def get_init_inputs():", "def get_init_inputs(torch=1):"), "torch for something else"),
        (GOOD.replace("return []", "return (x for x in []).gi_frame.f_builtins"), ".f_builtins"),
        (GOOD.replace("return []", "return __builtins__['open']('x')"), "__builtins__"),
        (GOOD.replace("return []", "return __loader__.get_data('x')"), "__loader__"),
        (GOOD.replace("return []", "return torch.ones(1)._typed_storage()"), "._typed_storage"),
        (
            GOOD.replace("forward(self, x, mask):", "forward(self, x, mask):\n        self._typed_storage()"),
            "._typed",
        ),
        (GOOD.replace("return []", "return torch.Tensor.storage.from_file('x')"), ".from_file"),
        ("from torch import load as softmax\n" + GOOD, "from torch import load"),
        ("from torch import os\n" + GOOD, "from torch import os"),
        ("from typing import sys\n" + GOOD, "from typing import sys"),
        ("from typing import get_type_hints\n" + GOOD, "from typing import get_type_hints"),
        (
            GOOD.replace("return []", "match 1:\n        case object(__class__=c):\n            return c"),
            "a class in a pattern",
        ),
    ],
)
def test_what_no_reference_may_hold(source: str, says: str) -> None:
    assert any(says in what for what in objections(source))


def test_a_plain_reference_is_taken() -> None:
    assert objections(GOOD) == []
    assert objections("import math\nimport torch.nn.functional as F\nfrom torch import nn\n" + GOOD) == []


WIDE = """\
from __future__ import annotations

import math
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor, einsum


class Model(nn.Module):
    def __init__(self, width: int, mask: Optional[Tensor] = None) -> None:
        super().__init__()
        self._scale = 1 / math.sqrt(width)
        self.weight = nn.Parameter(torch.empty(width, width, dtype=torch.float32))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        torch.nn.init.zeros_(self.weight[0].detach())
        self.register_buffer("steps", torch.arange(width).float())
        self.layers = nn.ModuleList([nn.Linear(width, width), nn.GELU()])

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.scaled_dot_product_attention(x, x, x) * self._scale
        with torch.autocast("cpu", enabled=False):
            x = torch.linalg.vector_norm(torch.fft.rfft(x).abs(), dim=-1) + torch.finfo(x.dtype).eps
        y = einsum("ij,jk->ik", x.to(torch.float32), torch.special.expit(self.weight))
        return torch.nn.functional.gelu(torch.where(y > 0, y, -math.inf)).type_as(x)


def get_inputs():
    return [torch.randn(4, 8, 16, generator=torch.Generator().manual_seed(0)), torch.bernoulli(torch.rand(3))]


def get_init_inputs():
    return [8]
"""


def test_a_reference_may_use_the_operators_and_modules_of_torch() -> None:
    assert objections(WIDE) == []


@pytest.mark.slow
@pytest.mark.usefixtures("no_stitching")
def test_unsafe_changing_and_blind_references_are_sent_back_and_the_run_goes_on(
    run: Run, server: LLMServer, tmp_path: Path
) -> None:
    server.then(file(UNSAFE), file(CHANGING), file(BLIND), file(GOOD))
    answer = _optimize(run, server, "--out", str(tmp_path / "out"))
    assert answer.code == 0, answer.err + answer.out
    asked = prompts(server)
    assert WORDS in asked[0]
    assert "import os" in asked[1]
    assert "changes its input 0" in asked[2]
    assert "the task cannot tell" in asked[3]
    shown = run("runs", "show", answer.json["run"]["id"], "--json").json
    assert {t["role"] for t in shown["llm"]} == {"author"}
    assert answer.json["run"]["status"] == "finished"
    assert answer.json["run"]["origin"] == f"intent: {WORDS}"
    home_runs = list((tmp_path / "home" / "runs").glob("*/reference.py"))
    assert [f.read_text() for f in home_runs] == [GOOD]
    with Store(Settings().url) as store:
        target = store.get_target(store.get_run(answer.json["run"]["id"]).target)
    assert target.definition.dtypes == ("bfloat16",)


@pytest.mark.slow
@pytest.mark.usefixtures("no_stitching")
def test_it_gives_up_after_some_tries(run: Run, server: LLMServer) -> None:
    server.then(*[file(WRONG)] * 3)
    answer = _optimize(run, server)
    assert answer.code == 2
    assert "3 references could not be used" in answer.json["error"]
    assert "It cannot be used" in prompts(server)[1]
    assert "masked_fill" in prompts(server)[1]  # torch's own words
    assert "reference.py and give that" in answer.json["error"]


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline", "no_slow_parts")
@pytest.mark.parametrize("readable", [True, False])
def test_a_resume_after_it_gave_up_asks_anew(
    run: Run, server: LLMServer, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    def fail(*_: object) -> NoReturn:
        raise TargetError("it does not run")

    monkeypatch.setattr(intent, "load_target", fail)
    answers = [file(f"{GOOD}# {n}\n") if readable else Reply(f"No code {n}.") for n in range(6)]
    server.then(*answers)
    answer = _optimize(run, server)
    assert (answer.code, len(server.seen)) == (2, 3)
    assert "resume the run to ask again" in answer.json["error"]
    with Store(Settings().url) as store:
        (found,) = store.list_runs()
    run("runs", "resume", found.id, "--json")
    assert len(server.seen) == 6
    assert prompts(server)[0] == prompts(server)[3]


def _optimize(run: Run, server: LLMServer, *more: str) -> Any:
    return run(
        "optimize", "--intent", WORDS, "--coder", f"openai:m@{server.url}", "--attempts", "0", "--json",
        "-c", "llm.retries=0", "-c", "referee.compile_baseline=false", "-c", "referee.quick_seconds=0.2",
        "-c", "referee.quick_blocks=2", *more,
    )  # fmt: skip
