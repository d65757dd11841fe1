"""What commands print with `--json` is what their published schemas say: the models refuse unknown fields."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from agentforge.cli._main import build
from agentforge.cli.answers import ANSWERS
from agentforge.cli.commands.verify import summary
from agentforge.store import Store
from agentforge.views.output import json_text
from tests.store import nouns

from .conftest import Run
from .test_runs import searched

__all__ = ["searched"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("runs", "list"),
        ("runs", "show", "run", "--source"),
        ("runs", "compare", "run", "other"),
        ("runs", "export", "run"),
        ("runs", "rm", "other"),
        ("runs", "export", "run", "--out", "run.json"),
        ("kb", "list"),
        ("kb", "stats"),
        ("kb", "matrix"),
        ("kb", "check"),
        ("kb", "export", "kb.jsonl"),
        ("version",),
    ],
)
def test_an_answer_has_the_published_fields(run: Run, searched: Path, command: tuple[str, ...]) -> None:
    with Store(f"sqlite:///{searched / 'agentforge.db'}") as store:
        store.update_run("run", target=store.save_target(nouns.target()))
    option = " --out" if "--out" in command else ""
    name = next(n for n in (" ".join(command[:2]) + option, command[0]) if n in ANSWERS)
    body = run(*command, "--json").json
    model = ANSWERS[name].model_validate_json(json.dumps(body))
    assert set(body) <= set(type(model).model_fields)


@pytest.mark.parametrize("card", ["cuda-graph", "approximate-reciprocals"])
def test_a_card_has_the_published_fields_of_its_kind(run: Run, card: str) -> None:
    shown = run("kb", "show", card, "--json").json
    assert ANSWERS["kb show"].model_validate_json(json.dumps(shown)).model_dump()["id"] == card


def test_a_verdict_and_an_error_have_the_published_fields(run: Run) -> None:
    ANSWERS["verify"].model_validate_json(json_text(summary(nouns.evaluation())))
    ANSWERS["error"].model_validate(run("runs", "show", "none", "--json").json)


def test_every_answer_has_a_schema() -> None:
    def names(command: Any, *path: str) -> Iterator[str]:
        for name, child in getattr(command, "commands", {}).items():
            yield from names(child, *path, name)
        if any("--json" in parameter.opts for parameter in command.params):
            yield " ".join(path)

    assert set(names(typer.main.get_command(build()))) <= set(ANSWERS)


def test_schemas_are_printed_for_one_command_or_all(run: Run) -> None:
    assert set(run("schema").json) == set(ANSWERS)
    assert "tried" in run("schema", "runs", "show").json["properties"]
    assert "rungs" in run("schema", "doctor", "--gpu").json["properties"]
    assert run("schema", "mcp").code == 2


def test_a_schema_says_how_infinities_and_nan_are_written(run: Run) -> None:
    fields = run("schema", "verify").json["$defs"]["Correctness"]["properties"]
    strings = {"enum": ["inf", "-inf", "nan"], "type": "string"}
    assert fields["max_absolute_error"]["anyOf"] == [{"type": "number"}, strings]
    assert all(json.loads(json_text(value)) in strings["enum"] for value in (math.inf, -math.inf, math.nan))
    metrics = run("schema", "audit").json["$defs"]["Claim"]["properties"]
    assert strings not in metrics["speedup"]["anyOf"]  # a claim is finite
