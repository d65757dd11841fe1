from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.analysis import Trajectory, trajectory
from agentforge.schema import Attempt
from agentforge.store import Store
from tests.loop.conftest import make_run
from tests.loop.scripted import bottleneck, profile


@pytest.fixture(scope="module")
def found(url: str) -> Trajectory:
    return trajectory("run", url)


def traces(figure: object, axis: str = "y") -> dict[str, object]:
    return {trace.name: trace for trace in figure.data if (trace.yaxis or "y") == axis}


@pytest.mark.slow
def test_speedups_with_intervals_and_the_best_so_far(found: Trajectory) -> None:
    figure = found.plot()
    norm = traces(figure)
    numbers = [s.attempt.number for s in found.searches[0].steps]
    assert list(norm["verified"].x) == numbers[:2]
    assert list(norm["verified"].y) == [2.0, 3.0]
    assert list(norm["verified"].error_y.arrayminus) == pytest.approx([0.02, 0.03])
    assert list(norm["not passed"].y) == [0.0]
    assert list(norm["best so far"].x) == [numbers[0], *numbers[:2], found.steps[-1].attempt.number]
    assert list(norm["best so far"].y) == [1.0, 2.0, 3.0, 3.0]
    assert list(norm["over torch.compile"].y) == pytest.approx([2.0, 0.75])
    softmax = traces(figure, "y2")
    assert list(softmax["best so far"].y) == [1.0, 1.0]
    assert [a.text for a in figure.layout.annotations[:2]] == ["norm", "softmax"]
    names = [t.name for t in figure.data if t.showlegend]
    assert len(names) == len(set(names))


def test_hovering_says_what_was_tried(found: Trajectory) -> None:
    first, _ = traces(found.plot())["verified"].text
    assert first.split("<br>") == [
        "#1 fuse-row-program",
        "verified",
        "2.00x [1.98, 2.02] over eager",
        "2.00x [1.98, 2.02] over torch.compile",
        "expected 1.00x over the best",
        "memory-bound",
    ]


def test_roofline(found: Trajectory) -> None:
    figure = found.roofline()
    drawn = {trace.name: trace for trace in figure.data}
    roof = drawn["100 GB/s, 1000 GFLOP/s"]
    assert list(roof.x) == pytest.approx([0.05, 10.0, 100.0])
    assert list(roof.y) == pytest.approx([5e9, 1e12, 1e12])
    assert list(drawn["verified"].x) == pytest.approx([0.5, 0.5])  # 1e6 operations on 2e6 bytes
    assert list(drawn["verified"].y) == pytest.approx([2e6, 3e6])
    assert list(drawn["eager"].y) == pytest.approx([1e6])
    assert figure.layout.title.text.endswith("2 attempts, 2 left out")


def test_an_attempt_that_goes_on_is_left_out(tmp_path: Path) -> None:
    norm = bottleneck("norm")
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run())
        store.save_profile("run", profile(norm))
        store.save_attempt(Attempt(id="run/1", run="run", bottleneck=norm.definition.hash, number=1))
        begun = trajectory(store=store)
    assert [trace.name for trace in begun.plot().data] == ["best so far"]
    assert begun.steps[0].outcome == "planned"


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(make_run())
        bare = trajectory(store=store)
    assert bare.plot().layout.title.text == "run run has no attempts yet"
    assert bare.roofline().layout.title.text.startswith("no attempt of run run has a time")
    assert "No attempt was made yet." in bare._repr_html_()
