"""The user's metric runs in a process of its own; whatever it does, the answer is a number or a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from agentforge.schema import Permission, TargetError
from agentforge.stitch.artifact import build_into
from agentforge.stitch.metric import metric_value, watch
from agentforge.stitch.variants import VariantBuilder

from .making import target_of
from .test_low_precision import needs_onednn
from .test_products import MODEL

METRIC = """
import os, time
import torch
import helper

def mean(model):
    torch.manual_seed(1)
    return model(torch.randn(64, 256)).abs().mean()

def drawn(model):
    return torch.rand(()).item() + sum(float(p.sum()) for p in model.parameters())

def other_shape(model):
    return model(torch.randn(3, 256)).mean()

def with_a_rest(model):
    return sum(model(torch.randn(rows, 256)).mean() for rows in (64, 3))

def mostly_others(model):
    return sum(model(torch.randn(rows, 256)).mean() for rows in (64, 3, 5))

def crashes(model):
    os.abort()

def raises(model):
    raise ValueError("no data")

def hangs(model):
    time.sleep(60)

def nan(model):
    return torch.tensor(float("nan"))

def text(model):
    return "good"

def several(model):
    return torch.zeros(2)

def leaves(model):
    raise SystemExit(3)

number = 4
"""
TARGET = target_of(MODEL)


@pytest.fixture
def permission(tmp_path: Path) -> Permission:
    (tmp_path / "helper.py").touch()
    (tmp_path / "metric.py").write_text(METRIC)
    found = Permission.parse("bf16", f"{tmp_path / 'metric.py'}:mean", "1%")
    assert found is not None
    return found


def named(permission: Permission, function: str) -> Permission:
    return permission.model_copy(update={"metric": f"{permission.file}:{function}"})


@pytest.mark.slow
def test_the_original_model_has_the_same_metric_each_time(permission: Permission) -> None:
    for function in ("mean", "drawn"):
        values = {metric_value(TARGET, named(permission, function)) for _ in range(2)}
        assert len(values) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("crashes", "was killed by SIGABRT"),
        ("raises", "ValueError: no data"),
        ("hangs", "no answer within 6 s"),
        ("nan", "returned nan: it must return one finite number"),
        ("text", "returned a str: it must return one finite number"),
        ("several", "returned a Tensor: it must return one finite number"),
        ("leaves", "SystemExit: 3"),
        ("number", "has no function number"),
        ("missing", "has no function missing"),
    ],
)
def test_a_metric_that_fails_is_one_sentence(permission: Permission, function: str, says: str) -> None:
    with pytest.raises(TargetError) as failed:
        metric_value(TARGET, named(permission, function), timeout_s=6.0 if function == "hangs" else 60.0)
    assert says in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_metric_that_does_not_import_is_one_sentence(permission: Permission, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("import no_such_package")
    with pytest.raises(TargetError, match=r"metric mean with the original model.*no_such_package"):
        metric_value(TARGET, permission)


@pytest.mark.slow
@needs_onednn
def test_the_changed_model_is_measured_and_must_have_been_used(
    permission: Permission, tmp_path: Path
) -> None:
    variant = VariantBuilder(TARGET, {}).with_kernels([], "kernels+bf16")
    assert variant is not None
    folder = tmp_path / "built"
    folder.mkdir()
    build_into(folder, variant.solution, "cpu", tmp_path / "cache")
    original, changed = (metric_value(TARGET, permission, where) for where in (None, folder))
    assert 0 < abs(changed - original) < 0.01 * original
    with pytest.raises(TargetError, match="never called the model with arguments like the example's"):
        metric_value(TARGET, named(permission, "other_shape"), folder)
    with pytest.raises(TargetError, match="1 of its 3 calls of the model had arguments like the example's"):
        metric_value(TARGET, named(permission, "mostly_others"), folder)
    metric_value(TARGET, named(permission, "with_a_rest"), folder)


def test_each_call_of_the_model_is_seen_with_what_ran_in_it() -> None:
    runs = [0]

    class Model(torch.nn.Module):
        def forward(self, count: int, inner: bool = False) -> torch.Tensor:
            if count < 0:
                raise ValueError("negative")
            runs[0] += count
            return self(0) if inner else torch.zeros(())

    model = Model()
    seen = watch(model, lambda: runs[0])
    for count in (2, 0, 1):
        model(count)
    with pytest.raises(ValueError, match="negative"):
        model(-1)
    model(3, inner=True)
    assert seen == [True, False, True, False, True]
