"""The policy lab: its file format, its arithmetic and replays."""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from agentforge.schema import UsageError
from agentforge.search import Choice, Node, Tree, policies
from agentforge.testing.search import counted, node, tree

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def lab() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    import search.lab

    yield search.lab
    sys.path.remove(str(BENCHMARKS))


def landscape(name: str = "a", *, held_out: bool = False, slope: float = 0.1) -> Any:
    """Two strategies of nine points: the farther from the first values, the faster; one point fails."""
    from search.landscape import Landscape, Point, Verdict

    points, verdicts = [], {}
    for strategy, x, y in product(("first", "second"), range(3), range(3)):
        solution = f"{strategy}{x}{y}"
        points.append(Point(strategy=strategy, parameters={"x": x, "y": y}, solution=solution))
        gain = slope * (x + y) + (slope if strategy == "second" else 0.0)
        verdicts[solution] = tuple(
            Verdict(
                status="PASSED", speedup=s, low=s * 0.95, high=s * 1.05, seconds=3.0, build_s=1.0, cell=(x, y)
            )
            for s in (math.exp(gain + noise) for noise in (-0.05, 0.0, 0.05))
        )
    verdicts["first11"] = (Verdict(status="CRASHED", seconds=2.0, build_s=1.0),) * 3
    return Landscape(
        name=name, held_out=held_out, definition=name, op_type="norm", reference="", time_s=1.0, sol_s=0.1,
        reachable_s=0.5, strategies=(("first", 0.2), ("second", 0.1)), points=tuple(points),
        verdicts=verdicts, provenance={},
    )  # fmt: skip


def test_a_file_is_read_as_it_was_written(lab: ModuleType, tmp_path: Path) -> None:
    from search.landscape import read, write

    file, both = tmp_path / "new" / "x.gz", [landscape("a"), landscape("b", held_out=True)]
    write(file, both)
    assert list(read(file).values()) == both
    assert both[0].complete and both[0].best == pytest.approx(0.5, abs=0.02)
    assert both[0].gains["first11"] == min(both[0].gains.values()), "it failed"
    assert both[0].mean < both[0].enough(0.95) < both[0].best
    lines = gzip.decompress(file.read_bytes()).decode().replace('"speedup":', '"speed":', 1)
    file.write_bytes(gzip.compress(lines.encode()))
    with pytest.raises(UsageError, match="line 1"):
        read(file)
    damaged = bytearray(gzip.compress(lines.encode()))
    damaged[20:40] = bytes(20)
    file.write_bytes(damaged)
    with pytest.raises(UsageError, match="cannot be read"):
        read(file)
    file.write_bytes(gzip.compress(b"")[:-4])
    with pytest.raises(UsageError, match="cannot be read"):
        read(file)


def test_neighbours_differ_in_one_parameter(lab: ModuleType) -> None:
    from search.proposers import Space

    space = Space(landscape())
    near = {s for _, s in space.changes("second00", {"second01"})}
    assert near == {"second02", "second10", "second20"}
    assert space.starts == {"first": "first00", "second": "second00"}


def test_random_search_is_the_mean_over_all_draws(lab: ModuleType) -> None:
    gains = [0.3, -0.2, 0.1, 0.7]
    expected = [np.mean([max(drawn) for drawn in combinations(gains, n)]) for n in (1, 2, 3, 4)]
    assert lab.random_search(gains, 6) == pytest.approx([*expected, 0.7, 0.7])


@pytest.mark.parametrize("name", policies.names())
def test_a_replay_gives_the_same_again_and_knows_no_more_than_it_saw(lab: ModuleType, name: str) -> None:
    from search.proposers import PROPOSERS, Space

    space = Space(landscape())
    for proposer in PROPOSERS:
        runs = [lab.Search(space, policies.create(name), proposer, seed) for seed in (1, 1, 2)]
        steps = [run.run(40) for run in runs]
        assert steps[0] == steps[1] != steps[2]
        nodes = runs[0].tree.nodes
        seen = [n for n in nodes if n.solution]
        assert len({n.solution for n in seen}) == len(seen) <= len(space.landscape.solutions)
        progress = [found for *_, found in steps[0]]
        found = [x for x in progress if x != space.landscape.mean]
        assert found == sorted(found) and set(found) <= {space.landscape.gains[n.solution] for n in seen}
        assert all(n.speedup <= 1.06 * math.exp(progress[-1]) for n in seen if n.speedup)
        assert all(a[0] + proposer.seconds <= b[0] for a, b in zip(steps[0], steps[0][1:], strict=False))
        assert steps[0][-1][1] == pytest.approx(len(nodes) * proposer.dollars)
        crashed = [n for n in seen if n.solution == "first11"]
        assert all(not n.passed and n.verdict == "abandon" for n in crashed)


def test_a_proposer_that_fails_is_asked_for_repairs(lab: ModuleType) -> None:
    from search.proposers import Proposer, Space

    hopeless = Proposer("hopeless", 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0)
    search = lab.Search(Space(landscape()), policies.create("best-first"), hopeless, 0)
    search.run(6)
    assert [n.parent for n in search.tree.nodes] == [None, "0", "1", None, "3", "4"]
    perfect = Proposer("perfect", 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    search = lab.Search(Space(landscape()), policies.create("best-first"), perfect, 0)
    assert search.run(40)[-1][2] == search.space.landscape.best
    assert search.tree.nodes[0].solution == "second00", "the strategy with the best start comes first"
    assert len(search.tree.nodes) == 18, "a search ends when all solutions were seen"


def test_where_no_kernel_beats_a_baseline_progress_is_the_same(lab: ModuleType) -> None:
    from search.proposers import Proposer, Space

    def slower(verdict: Any) -> Any:
        timed = {k: getattr(verdict, k) for k in ("speedup", "low", "high")}
        return verdict.model_copy(update={k: x / 3 for k, x in timed.items() if x})

    fast, perfect = landscape(), Proposer("perfect", 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    verdicts = {s: tuple(map(slower, made)) for s, made in fast.verdicts.items()}
    slow = fast.model_validate({**fast.model_dump(), "verdicts": verdicts})
    assert slow.best < 0 and slow.room == pytest.approx(fast.room)
    runs = [
        lab.Search(Space(one), lab.policies.create("iterative"), perfect, 0).run(9) for one in (fast, slow)
    ]
    assert [x[2] - y[2] for x, y in zip(*runs, strict=True)] == pytest.approx([math.log(3)] * len(runs[0]))


def test_noise_alone_is_no_gain(lab: ModuleType) -> None:
    """The best of many noisy means is not believed; clear differences are."""
    from search.landscape import Verdict, estimates

    chance = np.random.default_rng(0)

    def verdicts(gains: Any) -> dict[str, Any]:
        return {
            str(i): tuple(
                Verdict(
                    status="PASSED", speedup=math.exp(x), low=math.exp(x - 0.1), high=math.exp(x + 0.1),
                    seconds=1.0, build_s=0.0,
                )
                for x in chance.normal(gain, 0.1, 3)
            )
            for i, gain in enumerate(gains)
        }  # fmt: skip

    noise = verdicts(np.zeros(40))
    assert max(np.mean([math.log(v.speedup) for v in made]) for made in noise.values()) > 0.1
    assert max(gain for gain, _ in estimates(noise).values()) < 0.05
    true = chance.normal(0.0, 0.3, 40)
    found = estimates(verdicts(true))
    errors = np.array([found[str(i)][0] - gain for i, gain in enumerate(true)])
    assert np.abs(errors).mean() < 0.07
    assert 0.7 < np.sqrt((errors**2).mean()) / np.mean([e for _, e in found.values()]) < 1.4
    assert estimates({"a": ()}) == {}


def test_a_target_is_reached_by_insight(lab: ModuleType) -> None:
    from search.proposers import Proposer, Space

    class Asks:
        name = "asks"

        def select(self, tree: Tree) -> Choice:
            return Choice("a", "0", (0, 2)) if tree.nodes else Choice("a", None)

    perfect = Proposer("perfect", 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    search = lab.Search(Space(landscape()), Asks(), perfect, 0)
    search.run(2)
    assert [(n.solution, n.cell, n.target) for n in search.tree.nodes] == [
        ("second00", (0, 0), ()), ("second02", (0, 2), (0, 2)),
    ]  # fmt: skip


@pytest.mark.slow
def test_only_a_policy_that_is_better_at_both_looks_may_become_the_default(lab: ModuleType) -> None:
    names = ("best-first", "early", "both", "one landscape", "weak only")
    runs = {n: np.random.default_rng(0).uniform(0.4, 0.5, (3, 10, 30, 60, 3)) for n in names}
    runs["both"][..., 2] += 0.1
    runs["early"][..., :30, 2] += 0.1
    runs["one landscape"][:, 2, :, :, 2] += 0.8
    runs["weak only"][0, ..., 2] += 0.8
    runs["weak only"][1:, ..., 2] -= 0.01
    held_out = range(2, 10)
    assert lab.better(runs, held_out) == ["both"]
    assert lab.least_held_out(runs) == 7  # of four policies: 1/128 is below 0.05/4, 1/64 is not
    found = lab.compared(runs, held_out)
    point, low, high = found["20"]["over_default"]["both"]
    assert point == pytest.approx(0.1, abs=1e-3) and low <= point <= high
    point, low, high = found["20"]["over_default"]["one landscape"]
    assert point == pytest.approx(0.1, abs=1e-3) and low == 0.0 and high > 0.2, "landscapes are resampled"


def test_chance(lab: ModuleType) -> None:
    from search.comparison import chance_of_no_gain, friedman

    consistent = {
        "best-first": np.zeros((8, 3)), "better": np.full((8, 3), 0.1), "best": np.full((8, 3), 0.2),
    }  # fmt: skip
    assert friedman(consistent)["p"] < 0.001
    assert friedman(consistent)["ranks"] == {"best-first": 3.0, "better": 2.0, "best": 1.0}
    assert chance_of_no_gain(np.full((8, 3), 0.1)) == 1 / 256
    assert chance_of_no_gain(np.array([[0.1], [-0.1]])) == 0.75
    seven = np.full((7, 3), 0.1)
    assert chance_of_no_gain(seven) <= 0.05 / 6, "six policies share the error"
    seven[3] = -0.001
    assert chance_of_no_gain(seven) > 0.05 / 6, "one landscape of seven is enough against a policy"


def test_policies_meet_the_same_luck(lab: ModuleType) -> None:
    from search.proposers import PROPOSERS, Space

    def faults(name: str) -> dict[int, str]:
        search = lab.Search(Space(landscape()), policies.create(name), PROPOSERS[0], 3)
        search.run(40)
        fresh = [n for n in search.tree.nodes if n.parent is None or search.tree.nodes[int(n.parent)].passed]
        return {int(n.id): "own fault" if not n.solution else "" for n in fresh}

    one, other = faults("best-first"), faults("mcts")
    both = sorted(set(one) & set(other))
    assert len(both) > 5 and "own fault" in one.values()
    assert [one[n] for n in both] == [other[n] for n in both]


def test_a_recording_goes_on_only_as_it_began(lab: ModuleType) -> None:
    from search import record

    begun = landscape().model_copy(update={"provenance": {**record.provenance(), "depth": 1}})
    record.check_same(begun, 1)
    with pytest.raises(UsageError, match="recorded with depth 1, not 9"):
        record.check_same(begun, 9)


@pytest.mark.slow
def test_the_lab_compares_and_writes_its_table(lab: ModuleType, tmp_path: Path) -> None:
    every = {n: landscape(n, held_out=n > "c", slope=0.05 + 0.03 * i) for i, n in enumerate("abcdef")}
    every["flat"] = landscape("flat", slope=0.001)
    every["begun"] = every["a"].model_copy(update={"name": "begun", "verdicts": {}})
    result = lab.laboratory(every, ["mcts", "iterative"], seeds=2)
    assert result["left_out"] == {"incomplete": ["begun"], "nothing_to_gain": ["flat"]}
    assert result["open"]["landscapes"] == result["held_out"]["landscapes"] == 3
    curves = [by_unit for by_policy in result["curves"].values() for by_unit in by_policy.values()]
    assert len(curves) == 3 * 6 and all("dollars" in by_unit for by_unit in curves if len(by_unit) > 1)
    assert all(-1 <= share <= 1 for by_unit in curves for unit in by_unit.values() for share in unit["share"])
    needed = result["held_out"]["evaluations_to_best"]["mcts"]
    assert 1 <= needed[1] <= needed[0] <= needed[2] <= lab.ATTEMPTS + 1
    result["provenance"] = {"date": "2026-01-01T00:00", "commit": "abc"}
    text = lab.TABLE.within(f"before\n{lab.TABLE.begin}old\n{lab.TABLE.end}after", lab.table(result))
    assert "old" not in text and text.count("\n| `") == 5 and text.endswith("after")
    assert "weak, $0.08 | weak, 10 min | medium, $0.80 |" in lab.budgets(result)
    assert lab.budgets(result).count("\n| `") == 5
    lab.figure(result, tmp_path / "figure.html")
    assert "iterative, 60 rounds" in (tmp_path / "figure.html").read_text()


@pytest.mark.slow
def test_what_options_are_chosen_by_says_nothing_of_the_held_out_landscapes(
    lab: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    every = {n: landscape(n, held_out=n > "b", slope=0.05 + 0.03 * i) for i, n in enumerate("abc")}
    results, said = [], []
    for known in (every, {n: every[n] for n in "ab"}):
        results.append(lab.laboratory(known, ["iterative"], seeds=2))
        said.append(capsys.readouterr().out + lab.budgets(results[-1]))
    for part in ("open", "by_proposer", "curves"):
        assert results[0][part] == results[1][part]
    assert said[0] == said[1] and "held_out" not in results[1]
    with pytest.raises(SystemExit, match="not held out"):
        lab.laboratory({"c": every["c"]}, ["iterative"], seeds=2)


def test_progress_by_seconds_and_dollars_is_that_of_the_last_attempt_that_ended(lab: ModuleType) -> None:
    steps = [(10.0, 0.1, 0.2), (20.0, 0.2, 0.5), (20.0, 0.2, 0.5)]  # it ended after two attempts
    runs = np.array([steps, [(30.0, 0.1, 0.7)] * 3])
    found = [lab.within(runs, "seconds", limit).tolist() for limit in (9.0, 10.0, 19.0, 30.0)]
    assert found == [[0.0, 0.0], [0.2, 0.0], [0.2, 0.0], [0.5, 0.7]]
    assert lab.within(runs, "dollars", 0.1).tolist() == [0.2, 0.7]


def test_the_pages_have_the_figures_of_the_stored_results(lab: ModuleType) -> None:
    result, shown = json.loads(lab.RESULTS.read_text()), lab.CHOICE.content
    assert lab.TABLE.is_current(lab.table(result))
    assert lab.CHOICE.is_current(lab.choice(shown, result))
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", shown, re.MULTILINE)) == sorted(policies.names())


def test_a_run_with_each_policy_has_attempts_that_build_on_others(lab: ModuleType) -> None:
    from search.each_policy import ATTEMPTS, LONGER

    for name in policies.names():
        policy, nodes = policies.create(name), list[Node]()
        for number in range(LONGER.get(name, ATTEMPTS)):
            choice = policy.select(tree("a", *counted(nodes)))
            assert choice is not None
            nodes.append(node(f"n{number}", parent=choice.parent, speedup=1.1, strategy=f"s{number}"))
        assert any(one.parent for one in nodes), name


def test_the_definitions_are_enough_and_eight_are_held_out(lab: ModuleType) -> None:
    from search import record

    assert len(record.DEFINITIONS) >= 24 and len(set(record.HELD_OUT)) == 8
    assert set(record.HELD_OUT) < set(record.DEFINITIONS)
    classes = {record.DEFINITIONS[name].op_type for name in record.HELD_OUT}
    assert len(classes) >= 6
    sizes = {name: one.sizes[0] for name, one in record.OTHER_SHAPES.items()}
    assert len(sizes) == len(record.DEFINITIONS)
    assert sizes["softmax@16MiB"] == 16 << 20 and sizes["row_sum@1MiB"] == 1 << 20
    space = {"tile": (1, 2, 3), "stage": ("on", "off")}
    assert [*record.settings_of(space, 0)] == [{"tile": 1, "stage": "on"}]
    assert len([*record.settings_of(space, 1)]) == 4 and len([*record.settings_of(space, 2)]) == 6
