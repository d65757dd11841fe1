"""The table of what no GPU has proven is the same in code, documents and results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentforge.cli._doctor import on_a_gpu
from agentforge.devices.experimental import FEATURES, Feature, experimental, feature_table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_a_mark_goes_only_if_a_result_says_so(feature: Feature) -> None:
    place = ROOT / "benchmarks/results" / f"gpu-{feature.piece}.json"
    ran = place.is_file() and json.loads(place.read_text()).get("ok") is True
    assert feature.proven == ran
    assert f"def {feature.piece}(" in (ROOT / "benchmarks/gpu/run.py").read_text()


def test_the_page_has_the_table() -> None:
    assert feature_table() in (ROOT / "docs/gpu.md").read_text()


def test_the_readme_says_that_something_is_experimental() -> None:
    assert ("not proven on a GPU yet" in (ROOT / "README.md").read_text()) == bool(experimental())


def test_the_doctor_names_it() -> None:
    (check,) = on_a_gpu()
    assert all(feature.name.replace("`", "") in check.detail for feature in experimental())
