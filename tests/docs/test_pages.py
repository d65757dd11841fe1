"""Pages name files that exist, and the generated reference has every command, setting and record."""

import re
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest

from agentforge.schema import EVENTS

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "docs" / "index.md"
GENERATED = {f"docs/{name}.md" for name in ("changelog", "contributing")}
GENERATED |= {
    f"docs/reference/{name}.md" for name in ("cli", "settings", "schema", "events", "tables", "json")
}
PAGES = sorted(
    p
    for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if p.relative_to(ROOT).as_posix() not in GENERATED | {"docs/style.md", "CHANGELOG.md"}
)
OTHER_NAMES = {"agentforge.toml", "agentforge.policies", "agentforge.providers"}
"""A file, and entry-point groups that are no packages."""
_PATH = re.compile(
    r"`((?:agentforge|benchmarks|tests|tools|docs|examples|knowledge_base|prompts)/[\w./-]*|\.ci/run)`"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_path_in_a_page_exists(page: Path) -> None:
    missing = [path for path in _PATH.findall(page.read_text()) if not (ROOT / path).exists()]
    assert not missing


def test_a_path_in_the_glossary_exists() -> None:
    paths = re.findall(r"`([\w/]+\.py)`", (ROOT / "docs/glossary.md").read_text())
    assert len(set(paths)) > 50
    assert not [path for path in paths if not (ROOT / "agentforge" / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_python_name_in_a_page_exists(page: Path) -> None:
    lines = [line for line in page.read_text().splitlines() if "ntry-point group" not in line]
    if page.match("docs/extending/index.md"):
        lines = []  # a table of entry-point groups
    for name in re.findall(r"`(agentforge(?:\.\w+)+)(?:\(\))?`", "\n".join(lines)):
        if name not in OTHER_NAMES:
            resolve_name(name)


def test_a_class_in_the_glossary_is_in_the_file_that_it_names() -> None:
    wrong, checked = [], 0
    for line in (ROOT / "docs/glossary.md").read_text().splitlines():
        files = re.findall(r"`([\w/]+\.py)`", line)
        sources = "".join((ROOT / "agentforge" / file).read_text() for file in files)
        names = re.findall(r"`([A-Z][a-z]+(?:[A-Z]\w*)?)`", line.partition("** (")[0]) if files else []
        checked += len(names)
        wrong += [name for name in names if f"class {name}" not in sources]
    assert not wrong
    assert checked > 30


@pytest.mark.parametrize(
    ("question", "link", "answer"),
    [
        ("a check of the referee", "referee.md", "`behaviour/determinism.py`"),
        ("[a language]", "extending/language.md", "`agentforge.languages`"),
        ("[a search policy]", "extending/search-policy.md", "`agentforge.policies`"),
        ("`Run`", "glossary.md", "- **`Run`** (`schema/search.py`"),
    ],
)
def test_the_home_page_leads_to_the_answer(question: str, link: str, answer: str) -> None:
    (line,) = re.findall(rf"^- .*{re.escape(question)}(?:.*\n)*?(?=^- |\Z)", HOME.read_text(), re.MULTILINE)
    assert f"]({link}" in line
    assert answer in (ROOT / "docs" / link).read_text()


def test_the_generated_reference_is_complete() -> None:
    from tools import docs_reference

    cli = "\n".join(docs_reference.cli_page())
    for command in ("optimize", "verify", "runs resume", "campaign start", "kb export", "mcp", "version"):
        assert f"## `agentforge {command}`" in cli
    assert "`--input-shape` `[NAME=]SIZES`" in cli
    settings = "\n".join(docs_reference.settings_page())
    assert "| `referee.processes` | `int`, at least 3 | `3` | Fresh process groups" in settings
    schema = "\n".join(docs_reference.schema_page())
    assert "## `Evaluation`" in schema
    assert "| `verified` |" in schema
    events = "\n".join(docs_reference.events_page())
    assert "| `run.failed` | An error stopped the run; it can be resumed | `error` |" in events
    assert all(f"| `{event.model_fields['kind'].default}` |" in events for event in EVENTS)


def test_the_quickstart_lists_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = re.findall(r"^\| `.+", (ROOT / "docs" / "quickstart.md").read_text(), re.MULTILINE)
    assert not extras.keys() - set(re.findall(r"`(\w+)`", "\n".join(table)))
