"""The pinned versions can be installed."""

from __future__ import annotations

import tomllib
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[2]


def pins() -> dict[str, SpecifierSet]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = (Requirement(line) for line in lines if not line.startswith("#"))
    return {pin.name.lower(): pin.specifier for pin in found}


def test_torchs_cuda_builds_choose_their_triton() -> None:
    assert "3.7.1" in pins()["triton"]  # that of torch 2.13.0 on PyPI


def test_pins_fit_the_oldest_python() -> None:
    """Also its first release, and Debian 12 has 3.11.2. Looks at the pins that are installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = f"{project['requires-python'].removeprefix('>=')}.0"
    wanted = pins()
    needs = {
        found.name: found.metadata["Requires-Python"] or ""
        for found in distributions()
        if found.version in wanted.get(found.name.lower(), SpecifierSet("==0"))
    }
    assert len(needs) > 50
    assert not {name: python for name, python in needs.items() if oldest not in SpecifierSet(python)}
