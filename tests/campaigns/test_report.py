"""Reports, comparisons and exports of a campaign whose results are known."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event

from agentforge.campaigns.compare import compare
from agentforge.campaigns.exports.kernelbench import export_kernelbench
from agentforge.campaigns.exports.state import export_state, read_state
from agentforge.campaigns.extend import extend
from agentforge.campaigns.page import html
from agentforge.campaigns.page.plots import BOTTOM, HEIGHT, WIDTH, cost_curves, speedup_bars
from agentforge.campaigns.published import figures
from agentforge.campaigns.render import as_csv, markdown
from agentforge.campaigns.report import ItemReport, beside, build_report
from agentforge.campaigns.status import status_of
from agentforge.schema import (
    REUSED,
    Budget,
    CampaignItem,
    Evidence,
    Interval,
    ItemState,
    JudgingCode,
    LLMCall,
    NativeVerdict,
    ReasonCode,
    SearchSummary,
    StitchResult,
    SuiteProblem,
    TryOutcome,
    UsageError,
)
from agentforge.store import Store
from tests.campaigns.conftest import finish
from tests.store import nouns


def test_scores_count_verified_solutions_over_all_problems(store: Store) -> None:
    report = build_report(store, "night")
    base, llm = (arm for arm in report.arms if not arm.group)
    assert not report.finished
    assert (base.problems, base.over, base.failed, base.correct, base.verified, base.weak) == (
        4,
        4,
        1,
        2,
        2,
        0,
    )
    assert (llm.over, llm.failed, llm.correct, llm.verified, llm.weak) == (3, 0, 2, 1, 1)
    eager, best = base.scores["eager"], base.scores["best"]
    assert (eager.fast["0"], eager.fast["1"], eager.fast["2"]) == (0.5, 0.5, 0.25)
    assert eager.fast_low["1"] == 0.25  # of 1.05x, the low end is below 1
    assert (best.fast["0"], best.fast["1"]) == (0.5, 0.25)  # 1.05x over eager is 0.525x over compile
    assert eager.geometric_mean_speedup == pytest.approx((3 * 1.05) ** 0.5)
    assert eager.median_speedup == pytest.approx((3 + 1.05) / 2)
    assert eager.geometric_mean_kept == pytest.approx((3 * 1.05 * 1.5) ** 0.25)  # torch.compile, eager
    assert best.geometric_mean_kept == pytest.approx((1.5 * 0.525) ** 0.25)
    assert (llm.tokens, llm.dollars, llm.per_verified(llm.dollars)) == (150, 0.5, 0.5)
    levels = [(arm.arm, arm.group, arm.verified) for arm in report.arms if arm.group]
    assert levels == [
        ("base", "level1", 2),
        ("base", "level2", 0),
        ("llm", "level1", 1),
        ("llm", "level2", 0),
    ]


def test_problems_without_a_group_are_among_all_of_them(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'groups.db'}") as opened:
        made, problems = nouns.campaign(3)
        named = [
            p.model_copy(update={"group": group}) for p, group in zip(problems, ("", "a", ""), strict=True)
        ]
        opened.create_campaign(made, named)
        arms = build_report(opened, "night").arms
    expected = [("", 3), ("a", 1)]
    assert [(a.arm, a.group, a.problems) for a in arms] == [
        (arm, *line) for arm in ("base", "llm") for line in expected
    ]


def test_the_sol_score_counts_what_keeps_its_baseline_as_nothing(store: Store) -> None:
    for run in ("run-1", "run-4"):  # 3x of eager, which takes 3 s; and an artifact that keeps eager
        stitched = store.get_record(run, StitchResult)
        assert stitched is not None
        store.save_record(run, stitched.model_copy(update={"sol_s": 0.5}))
    report = build_report(store, "night")
    scores = {arm.arm: arm.scores["eager"] for arm in report.arms if not arm.group}
    assert scores["base"].sol_score == pytest.approx(2.5 / (2.5 + 0.5))
    assert (scores["base"].sol_known, scores["llm"].sol_known, scores["llm"].sol_score) == (1, 1, 0.0)
    assert "| 0.833 (1) |" in markdown(report)
    assert "| 0.000 (1) |" in markdown(report)


def test_a_report_is_text_and_a_table(store: Store) -> None:
    report = build_report(store, "night")
    text = markdown(report)
    assert "7 of 8 runs are over: not finished" in text
    assert "| base | all | 4 | 4 | 2 | 2 | 1 | 0 | 0 |" in text
    assert "| llm | all | 4 | 3 | 1 | 2 | 0 | 0 | 1 |" in text
    assert "- Knowledge: what the database had before the campaign, and what each arm found itself" in text
    assert "| base | all | 50.0% | 50.0% | 25.0% | 25.0% | 25.0% | 1.775 |" in text
    assert "## Weak tasks" in text
    assert "| level2/10_d | base | it does not import |" in text
    assert "| level1/2_b | llm | eager is kept |" in text
    rows = list(csv.DictReader(io.StringIO(as_csv(report))))
    assert len(rows) == 8
    assert (rows[0]["problem"], rows[0]["verified"]) == ("level1/1_a", "True")
    assert float(rows[0]["speedup_eager_low"]) == pytest.approx(2.7)
    assert type(report).model_validate_json(report.model_dump_json()) == report


def test_a_report_says_what_the_device_did_for_a_verified_solution(store: Store) -> None:
    store.save_evaluation(nouns.evaluation(seconds=30.0), "run-1")  # an attempt that was not kept costs too
    report = build_report(store, "night")
    base, llm = (arm for arm in report.arms if not arm.group)
    assert (base.device_seconds, base.verified, llm.device_seconds) == (30.0, 2, 0.0)
    head = "| arm | group | seconds | device-seconds | tokens | dollars |"
    row = markdown(report).partition(head)[2].splitlines()[2]
    assert row.split(" | ")[3] == "15"
    assert "<th>device-seconds</th>" in html(report)
    assert next(csv.DictReader(io.StringIO(as_csv(report))))["device_seconds"] == "30.0"


def test_a_report_says_how_many_items_each_code_judged(store: Store) -> None:
    store.save_record("run-1", JudgingCode(codes=("one",)))
    store.save_record("run-3", JudgingCode(codes=("one", "other")))
    report = build_report(store, "night")
    assert [item.codes for item in report.items[:3]] == [("one",), (), ("one", "other")]
    rows = markdown(report).partition("## The code that judged")[2].split("\n\n")[1].splitlines()[2:]
    assert rows == ["| not recorded | 4 |", "| one | 1 |", "| one and other | 1 |"]
    assert "<td>one and other</td>" in html(report)


def test_a_reason_of_several_lines_stays_in_its_row(store: Store) -> None:
    report = build_report(store, "night")
    odd = report.items[6].model_copy(update={"reason": "it fails:\n\n  File | line 3\r\nValueError"})
    text = markdown(report.model_copy(update={"items": (*report.items[:6], odd, *report.items[7:])}))
    assert f"| {odd.problem} | {odd.arm} | it fails: File / line 3 ValueError |" in text


def test_a_page_has_the_tables_and_plots(store: Store) -> None:
    report = build_report(store, "night")
    hostile = report.items[0].model_copy(update={"problem": "<script>alert(1)</script>"})
    report = report.model_copy(update={"items": (hostile, *report.items[1:])})
    page = html(report)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<td>level2/10_d</td><td>base</td><td>it does not import</td>" in page
    assert page.count("<polyline") == 4  # two arms, seconds and dollars
    assert page.count("<circle") == 10  # five measured artifacts over two baselines
    for line in (
        "Arms: base (playbook), llm (openai:m)",
        "Budget of a run: 1 minutes",
        "7 of 8 runs are over: not finished",
    ):
        assert f"<li>{line}</li>" in page


def test_a_bar_names_its_arm_however_long_the_problem_is(store: Store) -> None:
    report = build_report(store, "night")
    problem = "level3/1_a_problem_with_a_name_that_is_longer_than_its_place"
    long = tuple(item.model_copy(update={"problem": problem}) for item in report.items[:2])
    page = html(report.model_copy(update={"items": (*long, *report.items[2:])}))
    labels = [line for line in page.splitlines() if 'text-anchor="end">' in line and "level3" in line]
    assert len(labels) == 4
    assert {line.partition('">')[2].partition(":")[0] for line in labels} == {"base", "llm"}


def test_a_curve_ends_at_the_share_of_faster_problems(store: Store) -> None:
    report = build_report(store, "night")
    seconds, dollars = cost_curves(report)
    assert (seconds.unit, dollars.unit, dollars.most) == ("seconds of work", "dollars", 0.5)
    ends = {curve.name: curve.points.split()[-1] for curve in dollars.curves}
    inner = HEIGHT - BOTTOM
    assert ends["base"] == f"0.0,{inner * 0.5:.1f}"
    assert ends["llm"] == f"{WIDTH:.1f},{inner * 0.75:.1f}"
    bars = speedup_bars(report)[0].bars
    assert [bar.name for bar in bars][:2] == ["llm: level1/1_a", "base: level1/1_a"]
    assert all(bar.low < bar.point < bar.high for bar in bars)


def test_a_curve_goes_in_the_order_in_which_items_ended(store: Store) -> None:
    report = build_report(store, "night")
    assert [item.ended is None for item in report.items] == [False] * 7 + [True]
    order = {"level2/10_d": 1.0, "level2/1_c": 2.0, "level1/2_b": 3.0, "level1/1_a": 4.0}
    took = dict.fromkeys(order, 1.0) | {"level2/10_d": 5.0}
    items = tuple(
        item.model_copy(update={"ended": order[item.problem], "seconds": took[item.problem]})
        for item in report.items
    )
    seconds, *_ = cost_curves(report.model_copy(update={"items": items}))
    places = {
        curve.name: [tuple(map(float, point.split(","))) for point in curve.points.split()]
        for curve in seconds.curves
    }
    width, inner = WIDTH / 8, HEIGHT - BOTTOM
    assert [x for x, _ in places["base"]] == [width * x for x in (0, 5, 6, 7, 8)]
    assert [y for _, y in places["base"]] == [inner * y for y in (1, 1, 1, 0.75, 0.5)]
    assert [x for x, _ in places["llm"]] == [width * x for x in (0, 1, 2, 3, 8)], "10_d is not over"


def test_published_figures_stand_beside_ours(store: Store) -> None:
    report = beside(build_report(store, "night"), ["kernelbench", "cuda-l1"])
    rows = {(b.figure.who, b.figure.metric, b.figure.baseline, b.group, b.arm): b for b in report.against}
    first = rows["DeepSeek R1, one sample", "fast_1", "eager", "level1", "base"]
    assert (first.theirs, first.ours) == (0.12, 1.0)
    assert "theirs of 100 problems, ours of 2" in first.differs
    assert "ours is not finished" in first.differs
    assert rows["DeepSeek R1, one sample", "fast_1", "eager", "level3", "base"].ours is None
    assert rows["CUDA-L1", "fast_1", "compile", "all", "base"].ours == 0.25  # over the best baseline
    text = markdown(report)
    assert "| DeepSeek R1, one sample | fast_1 over eager | level1 | 12.0% | base | 100.0% |" in text
    assert type(report).model_validate_json(report.model_dump_json()) == report
    with pytest.raises(UsageError, match="the names are: kernelbench, cudaforge, cuda-l1, robust-kbench, "):
        beside(report, ["nobody"])


def test_every_published_figure_has_its_source() -> None:
    for figure in figures():
        assert figure.source.startswith("https://")
        assert figure.metric in ("fast_0", "fast_1", "fast_2", "median", "geomean", "mean")
        assert figure.baseline in ("eager", "compile")
        shares = figure.metric.startswith("fast_")
        assert all(0 < value <= (1 if shares else 100) for value in figure.values.values())
        assert not figure.problems or set(figure.values) == set(figure.problems)


def test_parts_of_a_published_share_make_the_whole() -> None:
    """A figure that was copied wrongly would not add up."""
    seen = set()
    for figure in figures():
        parts = {group: value for group, value in figure.values.items() if group != "all"}
        if figure.metric in ("fast_0", "fast_1", "mean") and parts and "all" in figure.values:
            total = sum(value * figure.problems[group] for group, value in parts.items())
            assert total / figure.problems["all"] == pytest.approx(figure.values["all"], abs=1e-3), figure
            seen.add(figure.name)
    assert seen == {"cudaforge", "cuda-l1"}


def test_arms_are_compared_by_problems_that_both_have_ended(store: Store) -> None:
    found = compare(store, "night/llm", "night/base")
    assert (found.problems, found.both, found.only_a, found.only_b, found.neither) == (3, 1, 0, 1, 1)
    assert (found.solved_p, found.ratio) == (1.0, None)
    for wrong, words in (
        ("night", "names no arm"),
        ("night/x", "night/base, night/llm"),
        ("day", "no campaign"),
    ):
        with pytest.raises(UsageError, match=words):
            compare(store, wrong, "night/base")
    for arms in (("night/llm", "night/base"), ("night/llm", "night/llm")):
        with pytest.raises(UsageError, match="no problem was measured against 'graph' by both arms"):
            compare(store, *arms, baseline="graph")


def test_a_pair_without_the_baseline_is_left_out_of_the_ratio(store: Store) -> None:
    before = store.get_record("run-1", StitchResult)
    assert before is not None and before.evaluation is not None
    found = store.get_evaluation(before.evaluation)
    assert found.performance is not None
    speedup = {"eager": found.performance.speedup["eager"]}
    performance = found.performance.model_copy(update={"speedup": speedup, "baseline_s": {"eager": 3.0}})
    stored = store.save_evaluation(found.model_copy(update={"performance": performance}), "run-1")
    store.save_record("run-1", before.model_copy(update={"evaluation": stored}))
    result = compare(store, "night/base", "night/base", baseline="compile")
    assert (result.both, result.measured, result.neither) == (2, 1, 2)


def test_a_ratio_of_arms_has_an_interval(store: Store) -> None:
    same = compare(store, "night/base", "night/base", baseline="eager")
    assert same.both == 2
    assert same.ratio == Interval(point=1.0, low=1.0, high=1.0)
    assert same.ratio_p is None


def test_the_status_counts_states_and_money(store: Store) -> None:
    status = status_of(store, "night")
    assert {state.value: n for state, n in status.states.items() if n} == {
        "done": 6,
        "failed": 1,
        "waiting": 1,
    }
    assert (status.finished, status.tokens, status.dollars, status.unpriced_calls) == (False, 150, 0.5, 0)
    assert [item.problem for item in status.stopped] == ["level2/10_d"]
    seconds = [
        e.seconds for n in (1, 3, 5) for e in store.run_evaluations(f"run-{n}", nouns.definition().hash)
    ]
    assert status.device_seconds >= sum(seconds)


def test_the_time_left_is_shared_by_workers(store: Store) -> None:
    made, problems = nouns.campaign(4, name="short")
    store.create_campaign(made.model_copy(update={"arms": made.arms[:1]}), problems)
    first = store.take_item("short", "host:1", 600)
    assert first is not None
    time.sleep(0.05)
    store.end_item(first, TryOutcome.FAILED, "it does not import")
    for worker in ("host:1", "host:1", "host:2"):  # the first one has a batch of two
        assert store.take_item("short", worker, 600) is not None
    seconds = store.campaign_progress("short").seconds
    assert status_of(store, "short").seconds_left == pytest.approx(3 * seconds / 2)


def test_an_export_has_kernelbenchs_layout(store: Store, tmp_path: Path) -> None:
    written = export_kernelbench(store, build_report(store, "night"), tmp_path)
    files = {p.relative_to(tmp_path).as_posix() for p in written}
    kernels = {f"runs/night-base-level1/level_1_problem_{n}_sample_0_kernel.py" for n in (1, 2)}
    kernels |= {"runs/night-llm-level1/level_1_problem_1_sample_0_kernel.py"}
    assert {f for f in files if f.endswith(".py")} == kernels
    assert all("ModelNew = _import" in (tmp_path / file).read_text() for file in kernels)
    results = json.loads((tmp_path / "runs/night-base-level1/eval_results.json").read_text())
    assert list(results) == ["1", "2"]
    ((first,), (_,)) = results.values()
    assert (first["sample_id"], first["correctness"], first["runtime"]) == (0, True, 1000.0)
    # as KernelBench's analysis reads it: one baseline for each problem, in the same order
    (timing,) = tmp_path.glob("results/timing/*/night-base-eager.json")
    levels = json.loads(timing.read_text())
    assert {level: list(found) for level, found in levels.items()} == {
        "level1": ["1_a.py", "2_b.py"],
        "level2": ["1_c.py", "10_d.py"],
    }
    assert levels["level1"]["1_a.py"] == {
        "mean": pytest.approx(3000.0),
        "statistic": "median",
        "num_trials": 24 * 3,
        "hardware": "null",
        "device": "null",
    }
    assert levels["level2"]["10_d.py"] == {"mean": -1.0, "statistic": "median", "device": ""}
    (timing,) = tmp_path.glob("results/timing/*/night-base-compile.json")
    assert json.loads(timing.read_text())["level2"]["10_d.py"]["mean"] == -1.0  # nothing was measured


def test_a_baseline_that_was_not_measured_is_not_written_and_the_report_says_so(
    store: Store, tmp_path: Path
) -> None:
    assert "torch.compile was not measured" not in markdown(build_report(store, "night"))
    for item in build_report(store, "night").items:
        stitched = store.get_record(item.run, StitchResult) if item.run else None
        if item.run is None or stitched is None or stitched.evaluation is None:
            continue
        found = store.get_evaluation(stitched.evaluation)
        assert found.performance is not None
        only = {
            name: {"eager": getattr(found.performance, name)["eager"]} for name in ("baseline_s", "speedup")
        }
        bare = found.model_copy(update={"performance": found.performance.model_copy(update=only)})
        stored = store.save_evaluation(bare, item.run)
        store.save_record(item.run, stitched.model_copy(update={"evaluation": stored}))
    export_kernelbench(store, build_report(store, "night"), tmp_path)
    timings = {path.name for path in tmp_path.glob("results/timing/*/*.json")}
    assert timings == {"night-base-eager.json", "night-llm-eager.json"}
    assert "Beside 5 of 5 measured results torch.compile was not measured" in markdown(
        build_report(store, "night")
    )


def test_a_run_that_was_removed_is_no_result_and_the_rest_is_reported(store: Store, tmp_path: Path) -> None:
    before = build_report(store, "night")
    store.delete_run("run-1")
    after = build_report(store, "night")
    lost, kept = after.items[0], before.items[0]
    assert kept.verified and not lost.verified
    assert (lost.run, lost.reason) == (None, "its run was removed")
    assert after.items[1:] == before.items[1:]
    assert "| level1/1_a | base | its run was removed |" in markdown(after)
    assert compare(store, "night/base", "night/llm").both == 0
    export_kernelbench(store, build_report(store, "night"), tmp_path)
    export_state(store, "night", tmp_path / "night.gz", tmp_path)
    assert read_state(tmp_path / "night.gz").items[0].result is None


def test_only_kernelbench_is_exported_as_kernelbench(store: Store, tmp_path: Path) -> None:
    campaign = store.get_campaign("night").model_copy(update={"name": "other"})
    store.create_campaign(campaign, [SuiteProblem(id="model", target="model.py")])
    with pytest.raises(UsageError, match="is not over KernelBench"):
        export_kernelbench(store, build_report(store, "other"), tmp_path)


def test_a_verdict_on_several_workloads_has_one_figure_for_each(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'several.db'}") as opened:
        made, _ = nouns.campaign(2, suite="sol:/x")
        native = {"workloads": [{"uuid": "a"}, {"uuid": "b"}]}
        problems = [
            SuiteProblem(id="norm", target="x.py", native=native),
            SuiteProblem(id="rope", target="y.py", native=native),
        ]
        opened.create_campaign(made.model_copy(update={"arms": made.arms[:1]}), problems)
        item = opened.take_item("night", "host:1", 600)
        assert item is not None
        finish(opened, "run-0", speedup=4.0, each={"1": 2.0, "2": 8.0})
        opened.attach_run(item, "run-0")
        opened.end_item(item, TryOutcome.DONE)
        report = build_report(opened, "night")
    done, waiting = report.items
    assert [done.workload_speedup[w]["eager"].point for w in ("1", "2")] == [2.0, 8.0]
    assert (done.workloads, waiting.workloads, done.speedup["eager"].point) == (2, 2, 4.0)
    assert done.seconds_by_workload() == {"norm/1": 0.5, "norm/2": 0.125}
    norm, rope = report.definitions
    assert (norm.definition, norm.workloads, norm.over, norm.verified) == ("norm", 2, 2, 2)
    assert (rope.workloads, rope.over, rope.verified, rope.speedup["eager"]) == (2, 0, 0, 1.0)
    assert norm.speedup == pytest.approx({"eager": 4.0, "best": 2.0})
    (arm,) = report.arms
    assert (arm.problems, arm.scores["eager"].geometric_mean_speedup) == (2, pytest.approx(4.0))
    for text in (markdown(report), html(report)):
        assert "2.00x [1.80, 2.20]" in text
        assert "8.00x [7.20, 8.80]" in text
    assert "| norm | 2 | base | verified | 8.00x [7.20, 8.80] | 4.00x [3.60, 4.40] |" in markdown(report)
    assert json.loads(report.model_dump_json())["items"][0]["workload_speedup"]["2"]["eager"]["point"] == 8.0


def test_workloads_of_one_definition_count_together(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'several.db'}") as opened:
        made, _ = nouns.campaign(4, suite="sol:/x")
        problems = [
            SuiteProblem(id="norm/1", target="x.py", definition="norm"),
            SuiteProblem(id="norm/2", target="x.py", definition="norm"),
            SuiteProblem(id="rope/1", target="x.py", definition="rope"),
            SuiteProblem(id="rope/2", target="x.py", definition="rope", unsupported="it needs a file"),
        ]
        arm = made.arms[0]
        opened.create_campaign(made.model_copy(update={"arms": (arm,)}), problems)
        for number, speedup in enumerate((2.0, 8.0, 4.0)):
            item = opened.take_item("night", "host:1", 600)
            assert item is not None
            finish(opened, f"run-{number}", speedup=speedup)
            opened.attach_run(item, f"run-{number}")
            opened.end_item(item, TryOutcome.DONE)
        assert opened.take_item("night", "host:1", 600) is None, "no worker takes what cannot run here"
        report, status = build_report(opened, "night"), status_of(opened, "night")
    norm, rope = report.definitions
    assert (norm.definition, norm.workloads, norm.verified) == ("norm", 2, 2)
    assert norm.speedup == pytest.approx({"eager": 4.0, "best": 2.0})
    assert (rope.over, rope.verified, rope.speedup["eager"]) == (2, 1, pytest.approx(2.0))
    (total,) = report.arms
    scores = total.scores["eager"]
    assert (total.problems, total.verified, total.unsupported, total.failed) == (4, 3, 1, 0)
    assert (scores.problems, scores.failures, scores.fast["1"]) == (2, 1, 0.5)
    assert scores.geometric_mean_kept == pytest.approx(8**0.5)
    assert report.finished
    assert status.stopped[0].reason == "it needs a file"
    text = markdown(report)
    assert "| norm | " in text
    assert "| rope/2 | base | it needs a file |" in text
    assert "it needs a file" in text


def test_an_extension_visits_the_most_promising_items_again(store: Store) -> None:
    with pytest.raises(UsageError, match=r"has items left: level2/10_d \(llm, waiting\): run"):
        extend(store, "night", "fast_1", seconds=100.0)
    item = store.take_item("night", "host:1", 600)
    assert item is not None
    store.end_item(item, TryOutcome.FAILED, "it does not import")
    with pytest.raises(UsageError, match="--minutes, --dollars or both"):
        extend(store, "night", "fast_1")
    before = {(i.problem, i.arm): i.verified for i in build_report(store, "night").items}
    found = extend(store, "night", "fast_1", seconds=100.0)
    visited = {(v.problem, v.arm) for v in found.visits}
    # Over the fastest baseline, 1.05x of eager is 0.5x; the solved, the weak and the failed are left alone.
    assert visited == {("level1/2_b", "base"), ("level1/2_b", "llm"), ("level2/1_c", "base")}
    waiting = {(i.problem, i.arm): i.visits for i in store.campaign_items("night") if not i.state.over}
    assert waiting.keys() == visited
    assert all(visits > 1 for visits in waiting.values())
    assert {(i.problem, i.arm): i.verified for i in build_report(store, "night").items} == before


def test_an_extension_leaves_out_what_cannot_gain(store: Store) -> None:
    """Of three items without a solution, one has nothing left to try, and one is at the speed of light."""
    made, problems = nouns.campaign(3, name="spent")
    store.create_campaign(made.model_copy(update={"arms": made.arms[:1]}), problems)
    total_s = nouns.profile().total_s
    for number, least_s in enumerate((None, total_s, total_s / 1000)):
        item = store.take_item("spent", "host:1", 600)
        assert item is not None
        finish(store, run := f"spent-{number}", speedup=None, mode="eager")
        stitched = store.get_record(run, StitchResult)
        assert stitched is not None
        store.save_record(run, stitched.model_copy(update={"sol_s": least_s}))
        store.save_record(run, SearchSummary(reason="as it likes", nothing_left=number == 0))
        store.save_profile(run, nouns.profile())
        store.attach_run(item, run)
        store.end_item(item, TryOutcome.DONE)
    found = extend(store, "spent", "fast_1", seconds=1e6)
    assert [visit.problem for visit in found.visits] == ["p2"]


@pytest.mark.parametrize(("objective", "visited"), [("fast_1.2", {"rope"}), ("speedup", {"rope", "norm/2"})])
def test_a_workload_beside_one_that_failed_gets_a_visit_only_for_its_speedup(
    store: Store, objective: str, visited: set[str]
) -> None:
    made, _ = nouns.campaign(3, name="spent")
    norms = [SuiteProblem(id=f"norm/{n}", target="x.py", source="x = 1", definition="norm") for n in (1, 2)]
    problems = [*norms, SuiteProblem(id="rope", target="x.py", source="x = 1")]
    store.create_campaign(made.model_copy(update={"arms": made.arms[:1]}), problems)
    for problem in problems:
        item = store.take_item("spent", "host:1", 600)
        assert item is not None
        if problem.id == "norm/1":
            store.end_item(item, TryOutcome.FAILED, "it does not import")
            continue
        finish(store, run := f"spent-{item.id}", speedup=2.2)
        store.attach_run(item, run)
        store.end_item(item, TryOutcome.DONE)
    found = extend(store, "spent", objective, seconds=1e6)
    assert {visit.problem for visit in found.visits} == visited


def _ended_by_a_model(store: Store, spent: float | None, **changes: object) -> None:
    """A campaign of two problems in which a model spent so many dollars for each, and found nothing."""
    made, problems = nouns.campaign(2, name="paid", **changes)
    store.create_campaign(made.model_copy(update={"arms": made.arms[1:]}), problems)
    for number in range(2):
        item = store.take_item("paid", "host:1", 600)
        assert item is not None
        finish(store, run := f"paid-{number}", speedup=None, mode="eager")
        call = {"key": run, "run": run, "role": "coder", "model": "m", "prompt": "p", "status": "answered"}
        store.save_call(LLMCall.model_validate({**call, "dollars": spent, "time": nouns.NOW}))
        store.attach_run(item, run)
        store.end_item(item, TryOutcome.DONE)


def test_an_extension_spends_at_most_its_dollars(store: Store) -> None:
    _ended_by_a_model(store, 0.1, budget=Budget(minutes=1, dollars=0.5))
    found = extend(store, "paid", "fast_1", dollars=1.0)  # of its 1.0, each item can spend 0.9 more
    assert len(found.visits) == 1
    assert (found.dollars, found.most_dollars) == (pytest.approx(0.1), pytest.approx(0.9))


def test_a_visit_whose_calls_are_not_all_priced_has_no_expected_cost(store: Store) -> None:
    _ended_by_a_model(store, 0.1, budget=Budget(minutes=1, dollars=0.5))
    _cut_off(store, "paid-0")
    found = extend(store, "paid", "fast_1", dollars=2.0)
    assert {visit.problem: visit.dollars for visit in found.visits} == {"p0": None, "p1": pytest.approx(0.1)}
    assert (found.dollars, found.most_dollars) == (None, pytest.approx(1.8))


def test_an_extension_without_shares_takes_no_limit_of_dollars(store: Store) -> None:
    _ended_by_a_model(store, None)
    with pytest.raises(UsageError, match=r"without --dollars, .*: leave out --dollars and give --minutes"):
        extend(store, "paid", "fast_1", dollars=5.0)
    found = extend(store, "paid", "fast_1", seconds=1e6)
    assert len(found.visits) == 2
    assert (found.dollars, found.most_dollars) == (None, None)


def test_a_tasks_own_checker_and_ranking_stand_beside_our_verdicts(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'native.db'}") as opened:
        made, _ = nouns.campaign(2, suite="gpu-mode:/x")
        native = {"kind": "benchmarks", "ranking_by": "geom", "of": 2}
        problems = [
            SuiteProblem(id=f"sort/{n}", target="x.py", definition="sort", native={**native, "number": n})
            for n in (1, 2)
        ]
        opened.create_campaign(made, problems)
        said = {  # by problem and arm: our verdict, and what the checker says
            ("sort/1", "base"): (False, NativeVerdict(evaluation="", accepted=True)),
            ("sort/1", "llm"): (
                False,
                NativeVerdict(evaluation="", accepted=False, message="mismatch found"),
            ),
            ("sort/2", "base"): (False, NativeVerdict(evaluation="", message="it needs a GPU")),
            ("sort/2", "llm"): (True, NativeVerdict(evaluation="", accepted=True)),
        }
        for number in range(4):
            item = opened.take_item("night", "host:1", 600)
            assert item is not None
            weak, verdict = said[item.problem, item.arm]
            finish(opened, run := f"run-{number}", speedup=2.0, weak=weak)
            stitched = opened.get_record(run, StitchResult)
            assert stitched is not None
            assert stitched.evaluation is not None
            opened.save_record(run, verdict.model_copy(update={"evaluation": stitched.evaluation}))
            opened.attach_run(item, run)
            opened.end_item(item, TryOutcome.DONE)
        report = build_report(opened, "night")
        opened.save_record("run-0", NativeVerdict(evaluation="of an earlier visit", accepted=False))
        later = build_report(opened, "night")
    found = {(i.problem, i.arm): (i.verified, i.checker) for i in report.items}
    assert found == {
        ("sort/1", "base"): (True, "accepted"),
        ("sort/1", "llm"): (True, "refused"),
        ("sort/2", "base"): (True, "no verdict"),
        ("sort/2", "llm"): (False, ""),  # a checker makes nothing verified
    }
    assert later.items[0].checker == ""
    assert [(r.task, r.arm, r.place, r.seconds) for r in report.ranking] == [
        ("sort", "base", 1, pytest.approx(1.0)),
        ("sort", "llm", None, None),
    ]
    text = markdown(report)
    assert "| sort/1 | llm | refused: mismatch found |" in text
    assert "| sort/2 | base | no verdict: it needs a GPU |" in text
    assert "Verified solutions by the task's own checker: 1 right, 1 wrong, of 3." in text
    assert "| sort | geom | 1 | base | 1000 |" in text
    assert "| sort | geom | - | llm | - |" in text
    rows = list(csv.DictReader(io.StringIO(as_csv(report))))
    assert [row["checker"] for row in rows] == [i.checker for i in report.items]
    assert type(report).model_validate_json(report.model_dump_json()) == report


def test_a_result_that_another_run_measured_is_named(store: Store) -> None:
    assert "Not measured again" not in markdown(build_report(store, "night"))
    before = store.get_record("run-1", StitchResult)
    assert before is not None and before.evaluation is not None
    found = store.get_evaluation(before.evaluation)
    environment = found.environment.model_copy(update={"notes": {REUSED: "evaluation x of run y"}})
    copy = store.save_evaluation(found.model_copy(update={"environment": environment}), "run-1")
    store.save_record("run-1", before.model_copy(update={"evaluation": copy}))
    report = build_report(store, "night")
    assert [item.reused for item in report.items if item.reused] == ["evaluation x of run y"]
    assert "| level1/1_a | base | evaluation x of run y |" in markdown(report)
    rows = csv.DictReader(io.StringIO(as_csv(report)))
    assert [row["reused"] for row in rows if row["reused"]] == ["evaluation x of run y"]


def _visited_again_in_vain(store: Store) -> None:
    """The first item has 3x from its first visit; the second one, on another machine, failed."""
    number = store.campaign_items("night")[0].id
    store.extend_items("night", {number: 1})
    item = store.take_item("night", "elsewhere:1", 600)
    assert item is not None and (item.id, item.run) == (number, None)
    store.create_run(nouns.run("run-again"))
    store.attach_run(item, "run-again")
    call = {"run": "run-again", "role": "coder", "model": "m", "prompt": "p", "status": "answered"}
    numbers = {"tokens_in": 10, "tokens_out": 5, "dollars": 0.9, "time": nouns.NOW}
    store.save_call(LLMCall.model_validate({"key": "again", **call, **numbers}))
    store.end_item(item, TryOutcome.FAILED, "it does not build")


def test_a_result_stays_when_its_item_is_visited_again(store: Store) -> None:
    before, compared = build_report(store, "night").items[0], compare(store, "night/base", "night/llm")
    store.extend_items("night", {store.campaign_items("night")[0].id: 1})
    assert build_report(store, "night").items[0].speedup == before.speedup
    assert compare(store, "night/base", "night/llm").problems == compared.problems
    store.end_item(taken(store), TryOutcome.DONE)
    _visited_again_in_vain(store)
    for state, reason in ((ItemState.FAILED, "it does not build"), (ItemState.WAITING, "")):
        found = build_report(store, "night").items[0]
        assert (found.state, found.verified, found.run, found.reason) == (state, True, before.run, reason)
        assert found.speedup == before.speedup
        store.retry_items("night", (ItemState.FAILED,))


def taken(store: Store) -> CampaignItem:
    item = store.take_item("night", "host:1", 600)
    assert item is not None
    return item


def test_runs_that_were_given_up_cost_too(store: Store) -> None:
    _visited_again_in_vain(store)
    store.retry_items("night", (ItemState.FAILED,))
    found = build_report(store, "night").items[0]
    assert (found.tokens, found.dollars) == (15, 0.9)
    assert status_of(store, "night").dollars == pytest.approx(0.5 + 0.9)


def _finished(store: Store, name: str, texts: tuple[str, ...], speedup: float, **changes: object) -> None:
    """A campaign of one arm in which each problem has the same speedup."""
    made, problems = nouns.campaign(len(texts), name=name, problems_hash=str(texts), **changes)
    named = [p.model_copy(update={"source": text}) for p, text in zip(problems, texts, strict=True)]
    store.create_campaign(made.model_copy(update={"arms": made.arms[:1]}), named)
    for number in range(len(texts)):
        item = store.take_item(name, "host:1", 600)
        assert item is not None
        finish(store, f"{name}-{number}", speedup=speedup)
        store.update_run(f"{name}-{number}", device=f"CPU of {name}")
        store.attach_run(item, f"{name}-{number}")
        store.end_item(item, TryOutcome.DONE)


def test_a_comparison_says_what_differs_and_leaves_other_problems_out(store: Store) -> None:
    assert compare(store, "night/llm", "night/base").differs == ()
    _finished(store, "monday", ("a", "b", "c"), 2.0)
    _finished(store, "tuesday", ("a", "b", "smaller"), 6.0, limit_s=90.0)
    found = compare(store, "tuesday", "monday")
    assert (found.problems, found.both) == (2, 2)
    assert found.ratio is not None and found.ratio.point == pytest.approx(3.0)
    assert found.differs == (
        "1 problems have another text in B and are left out, such as p2",
        "2 of 2 problems were measured on another device, such as p0: A on CPU of tuesday, and B on CPU of "
        "monday",
        "A and B have another limit of time",
        "A and B are of two campaigns: the later one knows what the earlier one found",
    )
    _finished(store, "sunday", ("x", "y"), 2.0)
    with pytest.raises(UsageError, match="2 problems have another text in B"):
        compare(store, "sunday", "monday")


def test_a_comparison_counts_pairs_of_other_devices_and_of_other_visits(store: Store) -> None:
    """Both arms have seen both machines."""
    _finished(store, "monday", ("a", "b", "c"), 2.0)
    _finished(store, "tuesday", ("a", "b", "c"), 2.0)
    for number, (first, second) in enumerate((("CPU", "CPU"), ("GPU", "CPU"), ("CPU", "GPU"))):
        store.update_run(f"monday-{number}", device=first)
        store.update_run(f"tuesday-{number}", device=second)
    for name, visits in (("monday", 2), ("tuesday", 1)):
        items = {item.problem: item.id for item in store.campaign_items(name)}
        store.extend_items(name, {items["p0"]: 1, items["p2"]: visits})
    found = compare(store, "monday", "tuesday")
    assert (found.problems, found.other_devices, found.other_visits) == (3, 2, 1)
    assert found.differs[:2] == (
        "2 of 3 problems were measured on another device, such as p1: A on GPU, and B on CPU",
        "1 of 3 problems had another budget after `extend`, such as p2: A 3 times, and B 2 times that of its "
        "campaign",
    )
    report = build_report(store, "monday")
    assert [item.visits for item in report.items] == [2, 1, 3]
    assert "; 2 runs have it more than once" in markdown(report)
    assert [row["visits"] for row in csv.DictReader(io.StringIO(as_csv(report)))] == ["2", "1", "3"]


def test_arms_are_compared_over_baselines_that_both_measured(store: Store) -> None:
    """2x over eager alone is no gain over 2x that is 1x of torch.compile."""
    _finished(store, "monday", ("a", "b"), 2.0)
    _finished(store, "tuesday", ("a", "b"), 2.0)
    for run in ("monday-0", "monday-1"):
        stitched = store.get_record(run, StitchResult)
        assert stitched is not None and stitched.evaluation is not None
        found = store.get_evaluation(stitched.evaluation)
        assert found.performance is not None
        alone = {
            name: {"eager": getattr(found.performance, name)["eager"]} for name in ("speedup", "baseline_s")
        }
        bare = found.model_copy(update={"performance": found.performance.model_copy(update=alone)})
        store.save_record(run, stitched.model_copy(update={"evaluation": store.save_evaluation(bare, run)}))
    result = compare(store, "monday", "tuesday")
    assert result.measured == 2
    assert result.ratio == Interval(point=1.0, low=1.0, high=1.0)


def test_a_later_visit_without_a_result_is_no_kept_baseline(store: Store) -> None:
    _visited_again_in_vain(store)
    parts = markdown(build_report(store, "night")).split("\n## ")
    sections = {title: rows for title, _, rows in (part.partition("\n") for part in parts)}
    kept = sections["The baseline is kept"]
    assert "level1/1_a" not in kept
    assert "| level1/2_b | llm | eager is kept |" in kept
    later = sections["A later visit has no result; the earlier one counts"]
    assert later.splitlines()[3:] == ["| level1/1_a | base | it does not build |"]


def test_a_kept_baseline_keeps_its_own_reason_while_a_later_visit_goes_on(store: Store) -> None:
    number = next(i.id for i in store.campaign_items("night") if (i.problem, i.arm) == ("level1/2_b", "llm"))
    store.extend_items("night", {number: 1})
    item = taken(store)
    assert item.id == number
    store.end_item(item, TryOutcome.RELEASED, "there is no route to the provider")
    assert "| level1/2_b | llm | eager is kept |" in markdown(build_report(store, "night"))


def _cut_off(store: Store, run: str) -> None:
    """A call of a run whose process was killed: what it cost is not known."""
    call = {"run": run, "role": "coder", "model": "openai:m", "prompt": "p", "status": "begun"}
    most = {"tokens_in": 10, "tokens_out": 90, "dollars": 9.0, "time": nouns.NOW}
    store.save_call(LLMCall.model_validate({"key": f"cut off in {run}", **call, **most}))


def test_a_call_that_was_cut_off_has_no_known_cost_in_any_view(store: Store) -> None:
    _cut_off(store, "run-2")
    status, report = status_of(store, "night"), build_report(store, "night")
    llm = next(arm for arm in report.arms if (arm.arm, arm.group) == ("llm", ""))
    assert (llm.tokens, llm.dollars, llm.unpriced_calls) == (150, 0.5, 1)
    assert (status.tokens, status.dollars, status.unpriced_calls) == (150, 0.5, 1)
    text = markdown(report)
    assert text.count("at least 0.5000") == 4, (
        "of all problems and of level 1: the cost, and that of a result"
    )
    assert [row["unpriced_calls"] for row in csv.DictReader(io.StringIO(as_csv(report)))] == ["0", "1"] + [
        "0"
    ] * 6
    assert compare(store, "night/base", "night/llm").dollars_ratio is None
    assert cost_curves(report)[1].unit == "dollars or more"
    _cut_off(store, "run-4")
    items = build_report(store, "night").items
    assert [i.dollars for i in items[:4]] == [0.0, 0.5, 0.0, None]


def test_workloads_of_one_definition_are_compared_as_one_problem(tmp_path: Path) -> None:
    """Ten workloads of one weigh no more than another problem."""
    with Store(f"sqlite:///{tmp_path / 'several.db'}") as opened:
        made, _ = nouns.campaign(11, suite="sol:/x")
        problems = [SuiteProblem(id=f"norm/{n}", target="x.py", definition="norm") for n in range(10)]
        opened.create_campaign(made, [*problems, SuiteProblem(id="rope", target="x.py")])
        for number in range(22):
            item = opened.take_item("night", "host:1", 600)
            assert item is not None
            faster = (item.arm == "base") == (item.problem != "rope")
            finish(opened, f"run-{number}", speedup=4.0 if faster else 2.0)
            opened.attach_run(item, f"run-{number}")
            opened.end_item(item, TryOutcome.DONE)
        found = compare(opened, "night/base", "night/llm")
        assert (found.problems, found.both, found.measured, found.only_a) == (2, 2, 2, 0)
        assert found.ratio is not None and found.ratio.point == pytest.approx(1.0)  # 2x and 0.5x
        opened.delete_run("run-0")  # one workload of the first arm
        found = compare(opened, "night/base", "night/llm")
        assert (found.problems, found.both, found.only_b, found.neither) == (2, 1, 1, 0)
        opened.extend_items("night", {opened.campaign_items("night")[2].id: 1})
        item = opened.take_item("night", "elsewhere:1", 600)
        assert item is not None
        opened.update_run("run-2", device="another")
        found = compare(opened, "night/base", "night/llm")
        assert (found.problems, found.other_devices, found.other_visits) == (2, 1, 1)


def statements(store: Store, call: Callable[[], object]) -> int:
    """How many statements a call takes."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    event.listen(store._db._engine, "before_cursor_execute", counted)
    call()
    event.remove(store._db._engine, "before_cursor_execute", counted)
    return count


def test_a_report_takes_as_many_statements_for_fifty_items_as_for_five(store: Store) -> None:
    counts = []
    for items in (5, 50):
        made, problems = nouns.campaign(items, name=(name := f"of-{items}"))
        store.create_campaign(made.model_copy(update={"arms": made.arms[:1]}), problems)
        for number in range(items):
            item = store.take_item(name, "host:1", 600)
            assert item is not None
            finish(store, run := f"{name}-{number}", speedup=2.0 + number, weak=number % 2 == 1)
            store.attach_run(item, run)
            store.end_item(item, TryOutcome.DONE)
        counts.append(statements(store, lambda name=name: build_report(store, name)))  # type: ignore[misc]
    assert counts[0] == counts[1]
    one = statements(store, lambda: build_report(store, "night"))
    assert statements(store, lambda: compare(store, "night/base", "night/llm")) == one


@pytest.mark.slow
def test_a_problem_is_weak_if_its_model_is_and_not_if_a_region_is(store: Store) -> None:
    whole = nouns.target()
    store.save_target(whole)
    key = store.save_target(whole.model_copy(update={"name": "in another place"}))
    assert key != whole.definition.hash
    codes = (ReasonCode.WEAK_TASK,)
    weak = {"speedup": None, "evidence": Evidence.SUSPICIOUS, "reasons": ("weak",), "codes": codes}
    store.update_run("run-1", target=key)
    store.save_evaluation(nouns.evaluation(**weak), "run-1")
    assert not build_report(store, "night").items[0].weak
    store.save_evaluation(nouns.evaluation(**weak, definition=whole.definition.hash), "run-1")
    assert build_report(store, "night").items[0].weak


def test_a_strangers_text_is_no_command_of_a_terminal_or_a_spreadsheet(store: Store) -> None:
    report = build_report(store, "night")
    odd = report.items[6].model_copy(update={"reason": "\x1b]0;owned\x07", "problem": "=1+1", "device": "-x"})
    whole = report.model_copy(update={"items": (*report.items[:6], odd), "devices": ("\x1b[2J",)})
    text = markdown(whole)
    assert "\x1b" not in text and "\x07" not in text
    assert "| =1+1 | base | \\u001b]0;owned\\u0007 |" in text
    assert "on \\u001b[2J" in text
    row = list(csv.DictReader(io.StringIO(as_csv(whole))))[6]
    assert (row["problem"], row["device"], row["reason"]) == ("'=1+1", "'-x", "\\u001b]0;owned\\u0007")
    assert float(row["seconds"]) == odd.seconds


def test_a_curve_counts_a_definition_once_and_within_the_speed_of_light(store: Store) -> None:
    report = build_report(store, "night")
    first, second, _, last = report.of_arm("base").values()  # 3x, 1.05x, a baseline that is kept, failed
    both = [
        item.model_copy(update={"definition": "norm", "ended": ended})
        for item, ended in ((first, 1.0), (second, 2.0))
    ]

    def heights(*items: ItemReport) -> list[float]:
        arms = report.campaign.model_copy(update={"arms": report.campaign.arms[:1]})
        (curve,) = cost_curves(report.model_copy(update={"items": items, "campaign": arms}))[0].curves
        return [1 - float(point.split(",")[1]) / (HEIGHT - BOTTOM) for point in curve.points.split()]

    assert heights(*both, last.model_copy(update={"ended": 3.0})) == pytest.approx([0, 0, 0.5, 0.5], abs=1e-3)
    failed = last.model_copy(update={"definition": "norm", "ended": 1.5})
    assert heights(*both, failed) == pytest.approx([0, 0, 0, 0]), "one of its workloads is not solved"
    assert heights(first) == pytest.approx([0, 1])
    assert first.latency_s is not None
    limited = first.model_copy(update={"sol_s": 4 * first.latency_s})
    assert heights(limited) == pytest.approx([0, 0]), "eager is as fast as light"
