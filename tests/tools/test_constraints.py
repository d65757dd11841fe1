"""The pinned versions can be installed."""

from __future__ import annotations

from pathlib import Path

from packaging.requirements import Requirement

CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"


def test_torchs_cuda_builds_choose_their_triton() -> None:
    lines = [line for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]
    pins = {found.name: found.specifier for found in map(Requirement, lines)}
    assert "3.7.1" in pins["triton"]  # that of torch 2.13.0 on PyPI
