"""A workbench over a run that is there already, with a simulated referee."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.config import Settings
from agentforge.devices import Roofline
from agentforge.runs import Workbench
from agentforge.schema import Definition, Target, Workload
from tests.loop.conftest import make_run
from tests.loop.scripted import SimulatedReferee, bottleneck, profile

ROOFLINE = Roofline(bandwidth=1e10, peak_flops={"float32": 1e11})


@pytest.fixture
def workbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    """Its run `run` has one bottleneck, `norm`; a solution says how fast it will be measured."""
    monkeypatch.setattr("agentforge.runs.pipeline.measure_roofline", lambda *_, **__: ROOFLINE)
    monkeypatch.setattr(Workbench, "referee", SimulatedReferee())
    bench = Workbench(Settings(home=tmp_path / "home"), "cpu")
    definition = Definition(name="target", op_type="model", reference="# target\n")
    target = Target(name="t", origin="t.py", definition=definition, workloads=(Workload(name="w"),))
    bench.store.save_target(target)
    run = make_run().model_copy(update={"target": definition.hash, "device": bench.device.name})
    bench.store.create_run(run)
    region = bottleneck("norm", share=0.9, sol_s=1e-6)
    bench.store.save_profile("run", profile(region))
    bench.store.save_definition(region.definition)
    yield bench
    bench.close()
