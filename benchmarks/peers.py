"""Time ONNX Runtime and OpenVINO beside eager, torch.compile and AgentForge's artifact.

    pip install ".[peers,hf]"
    python benchmarks/peers.py                      # examples/*.py and what benchmarks/problems has
    python benchmarks/peers.py my_model.py hf:config.json --minutes 5
    python benchmarks/peers.py --table              # write the table into docs/peers.md

Each model is first optimized with `agentforge optimize`. Then each party runs it in a process of its own,
with the same weights, inputs and number of threads. Parties take turns in random order, and all but one are
stopped. Answers are held against eager's with the referee's tolerance. ONNX Runtime and OpenVINO get a graph
exported for these shapes, so they have no guards; the others accept other calls too. Results are written
after each model. A later run skips the models that this commit has measured, unless eager differed from
itself by more than 10%.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import torch  # noqa: E402
from _provenance import provenance, same_code  # noqa: E402
from agreement import busy  # noqa: E402
from loops.compilers import PARTIES, Job, Party, PartyRefused  # noqa: E402
from loops.records import MOST_OTHERS  # noqa: E402

from agentforge.config import RefereeSettings, load_settings  # noqa: E402
from agentforge.frontends import FrontendOptions, load_target  # noqa: E402
from agentforge.referee.comparison.tolerance import derive, measure  # noqa: E402
from agentforge.referee.timing.statistics import (  # noqa: E402
    CONTROL_SLACK,
    deviation,
    log_ratios,
    speedup,
    undisturbed,
)
from agentforge.schema import AgentForgeError, Interval, Target, TolerancePolicy  # noqa: E402
from tools.generated import GeneratedPart  # noqa: E402

RESULTS = HERE / "results" / "peers.json"
TABLE = GeneratedPart("docs/peers.md", "peers", "benchmarks/peers.py --table")
OURS, HIDDEN = "AgentForge", "control"
GROUPS, BLOCKS = 3, 16
PACKAGES = {"ONNX Runtime": ("onnxruntime", "onnx", "onnxscript"), "OpenVINO": ("openvino",)}
_TURN_S, _LEAST, _MOST, _LONG_S = 0.05, 3, 200, 0.2
_DISTURBED = 1.5

Group = dict[str, list[float]]
"""Seconds per call by party, one entry per block."""


def standard_models() -> list[str]:
    """The repository's model files in KernelBench's convention, and its transformers configurations."""
    found = [*(HERE.parent / "examples").glob("*.py"), *(HERE / "problems").glob("*.py")]
    files = [str(path) for path in sorted(found) if "\nclass Model(" in path.read_text(encoding="utf-8")]
    return [*files, *(f"hf:{path}" for path in sorted((HERE / "problems" / "transformers").glob("*.json")))]


def optimized(spec: str, folder: Path, options: argparse.Namespace) -> str:
    """Make the artifact in `folder / "artifact"` unless it is there; a reason if there is none."""
    out = folder / "artifact"
    if (out / "plan.json").exists():
        return ""
    limits = ["--minutes", str(options.minutes), "-c", f"referee.threads={options.threads}"]
    limits += ["-c", "search.reuse_verdicts=false"]
    command = ["optimize", spec, *limits, "--out", str(out), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "agentforge.cli", *command], stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        answer = {"error": "it printed no JSON"}
    if (out / "plan.json").exists():
        return ""
    return str(answer.get("error") or answer.get("headline") or "no artifact was written")[:300]


def group(
    target: Target, seed: int, folder: Path, threads: int, parties: Sequence[str], blocks: int
) -> tuple[Group, dict[str, dict[str, Any]]]:
    """One fresh process for each party, and their turns.

    Returns:
        Times of the parties that ran, and a record of every party.
    """
    definition, records = target.definition.model_dump(mode="json"), dict[str, dict[str, Any]]()
    running: dict[str, Party] = {}
    with ExitStack() as stack:
        for name in parties:
            begin = time.monotonic()
            try:
                running[name] = Party(Job(name, definition, seed, threads, folder))
            except PartyRefused as refused:
                records[name] = {"refused": str(refused)}
                continue
            stack.callback(running[name].close)
            records[name] = {"version": running[name].version, "start_s": round(time.monotonic() - begin, 1)}
        if "eager" not in running:
            return {}, records
        compare(running, records)
        first = min(running["eager"].turn(1) for _ in range(3))
        calls = 2 if first > _LONG_S else min(_MOST, max(_LEAST, round(_TURN_S / first)))
        seconds: Group = {name: [] for name in running}
        for _ in range(blocks):
            for name in random.sample(list(running), len(running)):
                seconds[name].append(running[name].turn(calls))
    calm = undisturbed(seconds, _DISTURBED)
    return {name: [series[i] for i in calm] for name, series in seconds.items()}, records


def compare(running: Mapping[str, Party], records: Mapping[str, dict[str, Any]]) -> None:
    """Say how far each party's answer is from eager's, and whether the referee's tolerance allows it."""
    expected, exact = torch.load(running["eager"].answer()), torch.load(running["eager"].exact())
    same = exact is not None and [x.shape for x in exact] == [x.shape for x in expected]
    better = exact if same else [None] * len(expected)
    bounds = [derive(x, y, TolerancePolicy()) for x, y in zip(expected, better, strict=True)]
    for name, party in running.items():
        got = torch.load(party.answer())
        if [(x.shape, x.dtype) for x in got] != [(x.shape, x.dtype) for x in expected]:
            records[name] |= {"agrees": False, "relative_error": None}
            continue
        far = [measure(x, y, b) for x, y, b in zip(got, expected, bounds, strict=True)]
        error = max((d.relative for d in far), default=0.0)
        records[name] |= {
            "agrees": all(d.within(b) for d, b in zip(far, bounds, strict=True)),
            "relative_error": error if math.isfinite(error) else None,
        }


def summary(groups: Sequence[Group], records: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Times and ratios of one model, over all process groups.

    A party counts if it ran in every group. The best other is the fastest one whose answers agree.
    """
    names = [n for n in PARTIES if all(n in g for g in groups)]
    ms = {n: statistics.median(s for g in groups for s in g[n]) * 1e3 for n in names}

    def ratio(slow: str, fast: str) -> Interval:
        return speedup([log_ratios(g[slow], g[fast]) for g in groups], controls)

    controls = [log_ratios(g["eager"], g[HIDDEN]) for g in groups]
    found: dict[str, Any] = {
        "machine": deviation(controls),
        "ms": ms,
        "over_eager": {n: ratio("eager", n).model_dump() for n in names if n not in ("eager", HIDDEN)},
    }
    others = [n for n in names if n not in (OURS, HIDDEN) and records[n].get("agrees")]
    if OURS in names and records[OURS].get("agrees"):
        found["ours_over"] = {n: ratio(n, OURS).model_dump() for n in others}
        found["best_other"] = min(others, key=ms.__getitem__)
    return found


def finished(model: Mapping[str, Any], commit: str) -> bool:
    """Whether this commit has measured it, on a machine that hardly disturbed it."""
    measured = same_code(model["provenance"]["commit"], commit)
    return measured and bool(model.get("machine", 1.0) <= 1 + CONTROL_SLACK)


def outcome(model: Mapping[str, Any]) -> str:
    """Whether our artifact won against the best other party."""
    if "best_other" not in model:
        return "not measured"
    interval = model["ours_over"][model["best_other"]]
    return "win" if interval["low"] > 1 else "loss" if interval["high"] < 1 else "about the same"


def measured(spec: str, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The record of one model."""
    begin = time.monotonic()
    try:
        target = load_target(spec, FrontendOptions())
    except AgentForgeError as error:
        return {"refused": str(error), "outcome": "not measured", "provenance": provenance()}
    folder = work / f"{target.definition.hash}-{options.minutes:g}-{options.threads}"
    folder.mkdir(parents=True, exist_ok=True)
    if options.again:
        shutil.rmtree(folder / "artifact", ignore_errors=True)
    no_artifact = "" if OURS not in options.parties else optimized(spec, folder, options)
    parties = [n for n in options.parties if n != OURS or not no_artifact]
    groups, records = [], dict[str, dict[str, Any]]()
    for seed in range(options.groups):
        times, seen = group(target, seed, folder, options.threads, parties, options.blocks)
        groups.append(times)
        # what a party did wrong in one group is what is known of it
        records = {n: _worse(records.get(n), r) for n, r in seen.items()}
    if no_artifact:
        records[OURS] = {"refused": no_artifact}
    found: dict[str, Any] = {"threads": options.threads, "parties": records}
    if all("eager" in g for g in groups):
        found |= summary(groups, records)
    for made in ("inductor", "onnx"):
        shutil.rmtree(folder / made, ignore_errors=True)
    found |= {"outcome": outcome(found), "seconds": round(time.monotonic() - begin, 1)}
    return {**found, "provenance": provenance()}


def _worse(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    if old is None or "refused" in new:
        return new
    if "refused" in old:
        return old
    errors = [r["relative_error"] for r in (old, new)]
    worst = None if None in errors else max(errors)
    return {**new, "relative_error": worst, "agrees": old["agrees"] and new["agrees"]}


def table(models: Mapping[str, Mapping[str, Any]]) -> str:
    """The results as Markdown."""
    shown = [n for n in PARTIES if n not in ("eager", HIDDEN)]
    lines = ["| model | eager, ms | " + " | ".join(shown) + " | AgentForge over the best other |"]
    lines.append("|---" * (len(shown) + 3) + "|")
    notes = []
    for name, model in models.items():
        if "ms" not in model:
            notes.append(f"- `{name}`: {model.get('refused', 'eager does not run it')}.")
            continue
        cells = [f"`{name}`", f"{model['ms']['eager']:.3g}"]
        for party in shown:
            record, interval = model["parties"].get(party, {}), model["over_eager"].get(party)
            wrong = "" if record.get("agrees", True) else ", other answers"
            mode = f", `{record['version']}`" if party == OURS and "version" in record else ""
            cells.append(f"{_ratio(interval)}{mode}{wrong}" if interval else "-")
            if "refused" in record:
                notes.append(f"- `{name}`, {party}: {record['refused']}")
        best = model.get("best_other")
        cells.append(f"{_ratio(model['ours_over'][best])} over {best}: {model['outcome']}" if best else "-")
        lines.append("| " + " | ".join(cells) + " |")
    outcomes = [model["outcome"] for model in models.values()]
    kinds = ("win", "loss", "about the same", "not measured")
    counted = ", ".join(f"{kind}: {outcomes.count(kind)}" for kind in kinds)
    return "\n".join([*lines, "", f"{counted}.", *(["", "Not run:", "", *notes] if notes else []), ""])


def _ratio(interval: Mapping[str, float]) -> str:
    return f"{interval['point']:.2f} [{interval['low']:.2f}, {interval['high']:.2f}]"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="*", help="targets of `agentforge optimize`; default: the standard set"
    )
    parser.add_argument("--minutes", type=float, default=1.25, help="of each model's search")
    parser.add_argument("--groups", type=int, default=GROUPS, help="of fresh processes")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="in each group: one turn of each party")
    parser.add_argument("--threads", type=int, default=RefereeSettings().threads)
    parser.add_argument("--parties", nargs="+", choices=list(PARTIES)[2:], default=list(PARTIES)[2:])
    parser.add_argument("--again", action="store_true", help="search and measure again what has a result")
    parser.add_argument("--busy", action="store_true", help="measure also if other programs run")
    parser.add_argument("--table", action="store_true", help="only write the table into docs/peers.md")
    parser.add_argument("--work", type=Path, help="folder for artifacts; default: in AgentForge's cache")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    result: dict[str, Any] = json.loads(options.out.read_text()) if options.out.is_file() else {}
    found = result.setdefault("models", {})
    if options.table:
        TABLE.write(table(found))
        return 0
    missing = [p for n in options.parties for p in PACKAGES.get(n, ()) if not find_spec(p)]
    if missing:
        print(
            f"{', '.join(missing)} is missing: run pip install '.[peers]' in this clone, "
            "or choose other --parties"
        )
        return 2
    if not options.busy and (others := busy()) > MOST_OTHERS:
        print(f"{others:.1f} threads of other programs run; wait for an idle machine, or give --busy")
        return 2
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    options.parties = ["eager", HIDDEN, *options.parties]
    commit = provenance()["commit"]
    options.again |= not same_code(commit, commit)  # an unknown or changed state: nothing made before fits
    work = (options.work or load_settings([]).cache / "peers" / commit).absolute()
    for spec in options.models or standard_models():
        name = spec.removeprefix("hf:").rpartition("/")[2]
        if name in found and finished(found[name], commit) and not options.again:
            print(f"{name}: measured before (--again measures it anew)", flush=True)
            continue
        found[name] = measured(spec, work, options)
        result["provenance"] = provenance()
        options.out.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{name}: {found[name]['outcome']}, {found[name].get('seconds', 0)} s", flush=True)
        print(table({name: found[name]}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
