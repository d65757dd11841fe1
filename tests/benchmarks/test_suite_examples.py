"""`benchmarks/suite_examples.py` on a small folder."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("flat_imports")


def test_definitions_are_counted_and_the_others_have_a_reason(tmp_path: Path) -> None:
    counted = importlib.import_module("suite_examples").counted
    reference = tmp_path / "reference"
    (reference / "norm").mkdir(parents=True)
    (reference / "norm" / "rms.py").write_text("import torch\n")
    (reference / "norm" / "npu.py").write_text("import torch_npu\n")
    found = counted(f"multikernelbench:{tmp_path}")
    assert (found["suite"], found["definitions"], found["definitions_read"]) == ("multikernelbench", 2, 1)
    (definition,) = found["definitions_unsupported"]
    assert definition.endswith("npu")
    assert [*found["problems_unsupported"]] == ["it imports torch_npu, which needs an Ascend NPU"]
