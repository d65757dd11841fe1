"""The registry with built-ins and with really installed distributions."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from agentforge.config import load_settings
from agentforge.registry import Registry
from agentforge.schema import MachineError, UsageError
from agentforge.search import BestFirst, policies
from tests.distributions import install

MODULE = """
from pydantic import BaseModel, Field


class Plain:
    name = "plain"


class Deque:
    name = "deque"


class Typed:
    class Options(BaseModel):
        width: int = Field(default=2, ge=1)

    def __init__(self, target="", *, width):
        self.target = target
        self.width = width


class Loose:
    def __init__(self, *, color="red"):
        self.color = color


def anything(**options):
    return options


number = 3
"""


@pytest.fixture
def registry() -> Registry[object]:
    return Registry("things", {"deque": "collections:deque", "counter": "collections:Counter"})


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    things = ("Plain", "Typed", "Loose", "anything", "number")
    entries = {name.lower(): f"thing_pack:{name}" for name in things}
    entries |= {"gone": "thing_pack:Gone", "absent": "no_such_module:Thing", "quits": "quitting_thing:Thing"}
    install(monkeypatch, tmp_path / "site", "thing_pack", MODULE, {"agentforge.things": entries})
    (tmp_path / "site" / "quitting_thing.py").write_text("import sys\nsys.exit('no licence')\n")


def replace_deque(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str = "deque_pack") -> None:
    install(
        monkeypatch, tmp_path / name, name, MODULE, {"agentforge.things": {"deque": f"{name}:Deque"}}
    )  # fmt: skip


def test_built_ins_keep_their_order(registry: Registry[object]) -> None:
    assert registry.names() == ["deque", "counter"]
    assert type(registry.create("counter")).__name__ == "Counter"


def test_an_unknown_name_lists_the_known_ones(registry: Registry[object]) -> None:
    with pytest.raises(UsageError, match=r"'x' is not one of the things: deque, counter"):
        registry.get("x")


def test_the_factory_gets_the_arguments(registry: Registry[object]) -> None:
    assert list(registry.create("deque", [1, 2, 3], 2)) == [2, 3]  # type: ignore[call-overload]


@pytest.mark.usefixtures("plugin")
def test_plug_ins_come_first(registry: Registry[object]) -> None:
    names = registry.names()
    assert names[-2:] == ["deque", "counter"]
    assert names[:-2] == sorted(names[:-2]) == registry.plugins()
    assert registry.create("plain").name == "plain"  # type: ignore[attr-defined]


def test_a_plug_in_replaces_a_built_in_and_a_log_line_says_so(
    registry: Registry[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    replace_deque(tmp_path, monkeypatch)
    with caplog.at_level(logging.WARNING):
        assert registry.create("deque").name == "deque"  # type: ignore[attr-defined]
        registry.create("deque")
    lines = [r.getMessage() for r in caplog.records]
    assert lines == [
        "things: 'deque' is deque_pack:Deque from the package deque_pack 1.0; it replaces the built-in"
    ]
    assert registry.names() == ["deque", "counter"]


def test_two_packages_with_one_name_are_refused(
    registry: Registry[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_deque(tmp_path, monkeypatch)
    replace_deque(tmp_path, monkeypatch, "other_pack")
    with pytest.raises(UsageError, match=r"deque_pack 1.0 and other_pack 1.0 both add 'deque'"):
        registry.create("deque")


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("absent", "package thing_pack 1.0, cannot be loaded .ModuleNotFoundError"),
        ("gone", "package thing_pack 1.0, cannot be loaded .AttributeError"),
        ("quits", "package thing_pack 1.0, cannot be loaded .SystemExit: no licence"),
        ("number", "thing_pack:number must be callable"),
    ],
)
def test_a_plug_in_that_cannot_be_loaded_names_its_package(
    registry: Registry[object], name: str, said: str
) -> None:
    with pytest.raises(MachineError, match=said) as caught:
        registry.create(name)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("plugin")
def test_a_search_over_all_skips_the_broken_ones_and_says_so(
    registry: Registry[object], caplog: pytest.LogCaptureFixture
) -> None:
    found = [name for name, _ in registry.working()]
    assert found == ["anything", "loose", "plain", "typed", "deque", "counter"]
    assert sum("cannot be loaded" in r.getMessage() for r in caplog.records) == 3


@pytest.mark.usefixtures("plugin")
def test_options_are_validated_by_the_model(registry: Registry[object]) -> None:
    assert registry.create("typed").width == 2  # type: ignore[attr-defined]
    made = registry.create("typed", "there", options={"width": "5"})
    assert (made.target, made.width) == ("there", 5)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"option width of 'typed' \(things\): .*greater than or equal to 1"):
        registry.create("typed", options={"width": 0})
    with pytest.raises(
        UsageError, match=r"'typed' \(things\) has no option 'height'; its options are: width"
    ):
        registry.create("typed", options={"height": 1})


@pytest.mark.usefixtures("plugin")
def test_options_without_a_model_are_keyword_arguments(registry: Registry[object]) -> None:
    assert registry.create("loose", options={"color": "blue"}).color == "blue"  # type: ignore[attr-defined]
    assert registry.create("anything", options={"any": 1}) == {"any": 1}
    with pytest.raises(UsageError, match=r"'loose' \(things\) has no option 'size'; its options are: color"):
        registry.create("loose", options={"size": 1})
    with pytest.raises(UsageError, match=r"'plain' \(things\) has no option 'size'; it has no options"):
        registry.create("plain", options={"size": 1})


def test_the_search_policy_gets_its_options_from_the_settings() -> None:
    search = load_settings(["search.options.beam=4", "search.options.repairs=1"]).search
    policy = policies.create(search.policy, options=search.options)
    assert isinstance(policy, BestFirst)
    assert (policy.beam, policy.repairs, policy.children) == (4, 1, 3)
    with pytest.raises(UsageError, match=r"option beam of 'best-first' \(policies\)"):
        policies.create("best-first", options={"beam": "wide"})
