"""Metrics as rows."""

from __future__ import annotations

import math

import pytest

from agentforge.schema import Metric
from agentforge.store import Store

from . import nouns

METRICS = (
    Metric(name="dram__bytes.sum", value=1.5e9, unit="byte", source="ncu", kernel="softmax<float>"),
    Metric(name="dram__bytes.sum", value=math.nan, source="ncu", kernel="other"),
    Metric(name="vector_bytes", value=64, unit="B", source="compiler"),
    Metric(name="x" * 400, value=1.0, kernel="k\0" + "y" * 5000),
)


def test_rows_of_an_evaluation(store: Store) -> None:
    run = nouns.run()
    store.create_run(run)
    evaluation = nouns.evaluation(metrics=METRICS)
    identifier = store.save_evaluation(evaluation, run.id)
    assert store.save_evaluation(evaluation, run.id) == identifier  # once is once
    found = store.metrics(identifier)
    assert found[:2] == (METRICS[0], METRICS[2])
    assert len(found) == 3  # one has no value
    assert (found[2].name, found[2].kernel) == ("x" * 255, "k" + "y" * 5000)
    assert store.metrics("another evaluation") == ()
    assert store.get_evaluation(identifier).metrics[0] == METRICS[0]


@pytest.mark.parametrize("metrics", [(), METRICS[2:3]])
def test_an_evaluation_is_read_as_it_was_kept(store: Store, metrics: tuple[Metric, ...]) -> None:
    evaluation = nouns.evaluation(metrics=metrics)
    assert store.get_evaluation(store.save_evaluation(evaluation)) == evaluation
