"""The proof of transfer, on landscapes whose transfer is known."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from agentforge.schema import Context

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
STRATEGIES = ("s0", "s1", "s2")


@pytest.fixture(scope="module")
def transfer() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    import kb_transfer

    yield kb_transfer
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def playbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cards that expect the same of each strategy, so that the cold order is that of their names."""
    folder = tmp_path_factory.mktemp("playbook")
    for name in STRATEGIES:
        (folder / f"{name}.md").write_text(f"---\nid: {name}\ntitle: {name}\nsummary: It helps.\n---\n")
    return folder


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few of the poisoned bundles, to be fast. They praise the last of the cards here, and speak ill of the
    first one."""
    folder = tmp_path_factory.mktemp("bundles")
    for number in ("01", "02", "06", "09", "12", "13"):
        (bundle,) = (BENCHMARKS / "kb_poison").glob(f"{number}_*.jsonl")
        text = bundle.read_text().replace('"strict-math"', '"s2"').replace('"fuse-row-program"', '"s0"')
        (folder / bundle.name).write_text(text)
    return folder


def landscape(name: str, family: int, shape: str, best: int) -> Any:
    """Each strategy gives one solution. One is the fastest by far; families have no operators in common."""
    from search.landscape import Landscape, Point, Verdict

    gains = [0.7 if i == best else 0.05 + 0.02 * i for i in range(len(STRATEGIES))]
    return Landscape(
        name=name, held_out=False, definition=name, op_type=f"family{family}", reference="", time_s=1.0,
        context=Context(
            op_type=f"family{family}", shape_class=shape, architecture="x86-64 avx512", toolchain="g++-12",
            bound="memory", operators=((f"kind{family}", 2),), intensity=0,
        ),
        sol_s=0.1, reachable_s=0.3, strategies=(), provenance={},
        points=tuple(Point(strategy=s, solution=f"{name} {s}") for s in STRATEGIES),
        verdicts={
            f"{name} {s}": tuple(
                Verdict(status="PASSED", speedup=x, low=x * 0.95, high=x * 1.05, seconds=3.0, build_s=1.0)
                for x in (math.exp(gain + noise) for noise in (-0.01, 0.0, 0.01))
            )
            for s, gain in zip(STRATEGIES, gains, strict=True)
        },
    )  # fmt: skip


def world() -> list[Any]:
    """Two operators of each family, one of them in two shapes; the best strategy is that of the family."""
    return [
        landscape(f"{operator}{family}", family, shape, best=family)
        for family in range(len(STRATEGIES))
        for operator, shape in (("a", "l2/many-rows"), ("b", "l2/many-rows"))
    ] + [
        landscape(f"a{family}@16MiB", family, "dram/many-rows", best=family)
        for family in range(len(STRATEGIES))
    ]


@pytest.fixture(scope="module")
def found(transfer: ModuleType, playbook: Path, bundles: Path) -> Any:
    return transfer.Trial(world(), "best-first", 1, playbook, bundles).result()


@pytest.mark.slow
def test_experience_transfers_within_a_family_alone(found: Any) -> None:
    splits = found["splits"]
    assert [len(splits[name]["landscapes"]) for name in splits] == [6, 9, 9]
    for name in ("new shapes", "new operators"):
        assert splits[name]["cold"] == 2.0, "one to three evaluations, by the order of the names"
        warm = splits[name]["arms"]["warm"]
        assert warm["evaluations"] == 1.0
        assert warm["ratio"][0] == 0.5
        assert warm["slower"] == 0.0
    assert splits["new families"]["arms"]["warm"]["ratio"] == [1.0, 1.0, 1.0]


@pytest.mark.slow
def test_agreement_and_bounds(found: Any) -> None:
    for name in ("new shapes", "new operators"):
        one = found["splits"][name]
        assert one["agreement"]["warm"] > 0.6 > abs(one["agreement"]["permuted"])
        bounds = one["reachable"]
        assert bounds["true order"]["evaluations"] == 1.0
        assert 1.0 < bounds["cards' first, then true order"]["evaluations"] < 2.0
        assert bounds["mean of similar ones"]["evaluations"] <= bounds["mean of the others"]["evaluations"]


def test_permuted_outcomes_keep_their_results(transfer: ModuleType) -> None:
    from tests.store.test_store import outcome

    every = [outcome(n, n / 10, strategy=f"s{n % 3}", parameters={"tile": n}) for n in range(9)]
    mixed = transfer.permuted(every, transfer.Random(0))
    assert [o.log_speedup for o in mixed] == [o.log_speedup for o in every]
    assert [o.parameters for o in mixed] != [o.parameters for o in every]
    assert {(o.strategy, o.parameters["tile"]) for o in mixed} == {(f"s{n % 3}", n) for n in range(9)}


@pytest.mark.slow
def test_permuted_experience_is_worth_nothing(found: Any) -> None:
    for name in ("new shapes", "new operators"):
        arm = found["splits"][name]["arms"]["permuted"]
        assert 0.5 < arm["ratio"][0] < 2.0, arm
        assert arm["ratio"][1] <= 1.0 <= arm["ratio"][2], arm
    assert found["splits"]["new families"]["arms"]["permuted"]["ratio"][0] == 1.0


@pytest.mark.slow
def test_poison_is_worth_nothing(found: Any) -> None:
    """It moves the third strategy to the second place. At the first one, the median would be 1.5."""
    for split in found["splits"].values():
        arm = split["arms"]["poisoned"]
        assert (arm["ratio"][0], arm["evaluations"]) == (1.0, split["cold"])
        assert arm["slower"] == pytest.approx(1 / 3, abs=1e-3)


def test_poison_does_not_change_the_first_rank(transfer: ModuleType, playbook: Path, bundles: Path) -> None:
    one = world()[0]
    trial = transfer.Trial([one], "best-first", 1, playbook, bundles)
    asked = transfer.asked(transfer.context_of(one))
    cold, poisoned = ([s.id for s, _ in trial.informed(arm, one, (), 0).ranked(*asked)]
                      for arm in ("cold", "poisoned"))  # fmt: skip
    assert cold == ["s0", "s1", "s2"]
    assert poisoned == ["s0", "s2", "s1"], "the claims were read"


@pytest.mark.slow
def test_another_architecture_says_less_and_still_something(found: Any) -> None:
    for name in ("new shapes", "new operators"):
        arms = found["splits"][name]["arms"]
        assert arms["warm"]["evaluations"] <= arms["elsewhere"]["evaluations"] < 2.0


@pytest.mark.slow
def test_goals_and_table(transfer: ModuleType, found: Any) -> None:
    met = {goal["goal"]: goal["met"] for goal in found["goals"]}
    assert met["new operators: warm at most 0.50"]
    assert not met["new families: warm at most 0.90"]
    assert met["new families: poisoned about 1"]
    origin = {"date": "2026-01-01T00:00", "commit": "abc"}
    part = transfer.TABLE
    text = part.within(
        f"before\n{part.begin}stale\n{part.end}after",
        transfer.table({**found, "seeds": 2, "provenance": origin}),
    )
    assert "stale" not in text and text.endswith("after")
    assert "- new families: warm at most 0.90: not met (1.00)" in text
    assert "| new operators | 9 | 2.0 | 0.50 [" in text
    assert text.count(", slower on ") == 3 * (len(transfer.ARMS) + len(transfer.ORDERS))
    assert "| agreement | cold | warm | permuted | elsewhere |\n" in text
    assert part.begin in part.path.read_text()


def test_arithmetic(transfer: ModuleType) -> None:
    steps = [(0.0, 0.0, gain) for gain in (0.0, 0.5, 0.94, 0.96, 1.0)]
    assert transfer.evaluations(steps, 0.95, 9) == 4
    assert transfer.evaluations(steps[:3], 0.95, 9) == 10
    cold = np.array([[4.0, 4.0], [2.0, 2.0], [10.0, 10.0]])
    arm = transfer.compared(cold * [[0.5], [2.0], [0.25]], cold)
    assert arm["ratio"] == [0.5, 0.25, 2.0]
    assert arm["slower"] == pytest.approx(1 / 3, abs=1e-3)


def test_landscapes_without_a_context_are_left_out(transfer: ModuleType) -> None:
    one = landscape("a", 0, "l2/many-rows", 0)
    flat = one.model_copy(update={"verdicts": dict.fromkeys(one.verdicts, ())})
    assert transfer.usable([one, one.model_copy(update={"context": None}), flat]) == [one]


def test_landscapes_without_anything_to_find_are_left_out(transfer: ModuleType) -> None:
    one = landscape("a", 0, "l2/many-rows", 0)
    best = one.verdicts["a s0"]
    alike = one.model_copy(update={"verdicts": {**one.verdicts, "a s1": best}})
    assert transfer.share_of_best(alike) == pytest.approx(2 / 3)
    slow = {
        s: tuple(
            v.model_copy(update={k: getattr(v, k) / 3 for k in ("speedup", "low", "high")}) for v in made
        )
        for s, made in one.verdicts.items()
    }
    below = one.model_validate({**one.model_dump(), "verdicts": slow})
    assert below.best < 0
    assert transfer.usable([alike, below]) == []
