"""docker/compose.yaml says what the commands and the images need. Docker itself is not asked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from agentforge.cli._main import build

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
    assert isinstance(found, dict)
    return found


def test_workers_share_the_database_the_home_and_the_workspace(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"database", "agentforge", "worker"}
    front, worker = services["agentforge"], services["worker"]
    for key in ("environment", "volumes", "build", "depends_on"):
        assert worker[key] == front[key]
    assert worker["profiles"] == ["campaign"]
    assert "container_name" not in worker and "ports" not in worker  # else only one could run
    assert services["database"]["healthcheck"]
    named = {v.partition(":")[0] for s in services.values() for v in s["volumes"] if not v.startswith("$")}
    assert named == set(compose["volumes"])


def test_a_worker_runs_a_command_that_there_is(compose: dict[str, Any]) -> None:
    command = typer.main.get_command(build())
    words = compose["services"]["worker"]["command"]
    assert words[:2] == ["campaign", "work"]
    assert "work" in command.commands["campaign"].commands  # type: ignore[attr-defined]
    assert re.fullmatch(r"\$\{CAMPAIGN:-\w+\}", words[2])


def test_the_quickstarts_container_keeps_its_home_and_its_result() -> None:
    (line,) = re.findall(r"^\$ docker run (.+)$", (ROOT / "docs" / "quickstart.md").read_text(), re.MULTILINE)
    image = (ROOT / "docker" / "Dockerfile.cpu").read_text()
    home, workspace = re.findall(r"^VOLUME (\S+)\nWORKDIR (\S+)$", image, re.MULTILINE)[0]
    assert {place for _, place in re.findall(r'-v "?([\w$]+):([\w/]+)', line)} == {home, workspace}
    assert re.search(r"--out \w+$", line)  # relative to the folder of the model


@pytest.mark.parametrize("file", ["Dockerfile.cpu", "Dockerfile.cuda"])
def test_an_image_has_every_file_of_the_wheel(file: str) -> None:
    copied = set(re.findall(r"^COPY (.+) \S+$", (ROOT / "docker" / file).read_text(), re.MULTILINE))
    sources = {word for line in copied for word in line.split()}
    text = (ROOT / "pyproject.toml").read_text()
    included = re.findall(r'^"(.+)" = "agentforge/_data/', text, re.MULTILINE)
    assert len(included) >= 3
    assert set(included) <= sources
    assert all((ROOT / source).exists() for source in sources)


def test_the_image_for_gpus_can_do_what_the_other_one_can() -> None:
    extras = {}
    for file in ("Dockerfile.cpu", "Dockerfile.cuda"):
        (found,) = re.findall(r'"\.\[([\w,]+)\]"', (ROOT / "docker" / file).read_text())
        extras[file] = set(found.split(","))
    assert extras["Dockerfile.cuda"] == extras["Dockerfile.cpu"] | {"gpu"}


def test_a_password_may_have_any_character(compose: dict[str, Any]) -> None:
    """Compose copies it as it is: in a URL, `@` and `/` would end it."""
    secret = "${POSTGRES_PASSWORD}"
    for name in ("agentforge", "worker"):
        environment = compose["services"][name]["environment"]
        assert secret not in environment["AGENTFORGE_DATABASE_URL"]
        assert environment["PGPASSWORD"] == secret
