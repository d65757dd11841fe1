"""The artifact's report: what was installed, how fast it is, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentforge._version import __version__
from agentforge.devices import DeviceSpec
from agentforge.markdown import table
from agentforge.schema import Evaluation, Interval, Profile, Target, baseline_name

from .proof import seen_runs
from .select import Selection
from .shape_report import shape_table, shape_times
from .trial import Trial, describe
from .variants import Promoted

_CALLS = {
    "kernels": "Inference only: the kernels have no backward pass. The model's original forward runs with "
    "gradients enabled, in training mode if that can matter, and for any call that differs from the captured "
    "one in shape, dtype, layout or device.",
    "compile": "`torch.compile` runs every call, also with gradients enabled. A call that differs from the "
    "captured one, for example in shape, may compile anew.",
    "freezing": "`torch.compile` runs every call. Weights are frozen in the code of the first call without "
    "gradients; with gradients enabled, or after a weight changed, it runs in its default mode.",
    "contiguous": "`torch.compile` runs calls whose tensors are all contiguous, also with gradients enabled. "
    "The model's original forward runs the others.",
    "eager": "",
}
"""What runs in which calls."""
_KERNELS = "kernel", "for", "call sites", "runs in a forward", "alone", "author"
_TRIALS = "what", "level", "status", "evidence", "outcome"


def report_data(
    target: Target,
    profile: Profile,
    device: DeviceSpec,
    kernels: Mapping[str, Promoted],
    evidence: Mapping[str, Evaluation],
    selection: Selection,
    refused: Mapping[str, str],
    notes: Sequence[str],
    precision: Mapping[str, Any] | None = None,
    first_verdict_s: float | None = None,
) -> dict[str, Any]:
    """Return the content of `report.json`.

    Args:
        precision: what became of the user's permission for lower precision; None without one.
        first_verdict_s: see `stitch`.
    """
    trial = selection.trial
    return {
        "target": {
            "name": target.name,
            "origin": target.origin,
            "hash": target.definition.hash,
            "workloads": [w.model_dump(mode="json") for w in target.workloads],
        },
        "mode": selection.variant.mode,
        "summary": selection.reason,
        "evidence": _evidence(selection),
        "performance": _performance(trial),
        "tokens_per_second": _token_rates(target, profile, selection),
        "shapes": shape_times(target, selection),
        "correctness": _dump(trial.evaluation.correctness if trial else None),
        "kernels": [
            _kernel(kernel, selection, evidence)
            for kernel in kernels.values()
            if is_selected(kernel, selection)
        ],
        "packed": _packed_sites(profile, selection),
        "moves": [
            *({"kind": kind, "kept": True, "places": n} for kind, n in selection.variant.moves.items()),
            *({"kind": kind, "kept": False, "why": why} for kind, why in selection.dropped.items()),
        ],
        "precision": precision,
        "left_out": [_left_out(kernel) for kernel in kernels.values() if not is_selected(kernel, selection)],
        "sites_left_as_they_were": dict(refused),
        "trials": [_trial(t) for t in selection.trials],
        "profile": {
            "total_s": profile.total_s,
            "attributed": profile.attributed,
            "traces": profile.traces,
            "notes": list(profile.notes),
        },
        "first_verdict_s": first_verdict_s,
        "calls": which_calls(selection.variant.mode),
        "provenance": {
            "agentforge": __version__,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "device": device.model_dump(mode="json"),
            "environment": _dump(trial.evaluation.environment if trial else None),
        },
        "notes": list(notes),
    }


def _token_rates(target: Target, profile: Profile, selection: Selection) -> dict[str, dict[str, float]]:
    """Tokens per second of prefill and decode, by baseline and of the artifact; empty for other targets.

    If eager is kept, the artifact has eager's rates: those of the last trial, else of the profile.
    """
    trials = [t for t in (selection.trial, *reversed(selection.trials)) if t and t.evaluation.performance]
    performance = trials[0].evaluation.performance if trials and target.generation else None
    if performance is None:
        return {name: {"eager": rate, "artifact": rate} for name, rate in profile.tokens_per_second.items()}
    rates: dict[str, dict[str, float]] = {}
    for workload in target.workloads:
        seconds = dict(performance.workload_s[workload.name])
        own = seconds.pop("candidate")
        seconds["artifact"] = own if selection.trial else seconds["eager"]
        rates[workload.name] = {name: workload.tokens / s for name, s in seconds.items()}
    return rates


def _packed_sites(profile: Profile, selection: Selection) -> list[str]:
    packed = selection.variant.packed
    return [
        site.name for site in profile.call_sites if any((site.unit, node) in packed for node in site.nodes)
    ]


def which_calls(mode: str) -> str:
    """What an artifact of this mode runs in which calls, in sentences; empty if it changes nothing."""
    way, _, option = mode.partition("+")
    return _CALLS[way] if way == "kernels" else _CALLS.get(option.rpartition("-")[2], _CALLS[way])


def is_selected(kernel: Promoted, selection: Selection) -> bool:
    """True if the selected variant contains the kernel."""
    return kernel.name in selection.variant.kernels


def _dump(model: Any) -> Any:
    return model.model_dump(mode="json") if model is not None else None


def _evidence(selection: Selection) -> dict[str, Any]:
    trial = selection.trial
    if trial is None:
        return {"level": "unchanged", "reasons": ["the model is unchanged"], "engagement": "no kernels"}
    if trial.variant.kernels and trial.proven:
        engagement = "every kernel was counted in one forward of the measured process"
    else:
        engagement = "; ".join(trial.problems) or "no kernels"
    return {
        "level": trial.evaluation.evidence.value if not trial.problems else "unverified",
        "reasons": list(trial.evaluation.reasons) + list(trial.problems),
        "engagement": engagement,
    }


def _performance(trial: Trial | None) -> dict[str, Any] | None:
    performance = trial.evaluation.performance if trial else None
    if performance is None:
        return None
    return {**performance.model_dump(mode="json"), "best_baseline": performance.best_baseline}


def _kernel(kernel: Promoted, selection: Selection, evidence: Mapping[str, Evaluation]) -> dict[str, Any]:
    trial = selection.trial
    alone = evidence.get(kernel.definition.hash)
    return {
        "name": kernel.name,
        "definition": kernel.definition.name,
        "op_type": kernel.definition.op_type,
        "language": kernel.solution.spec.language,
        "author": kernel.solution.author,
        "solution": kernel.solution.hash,
        "parameters": kernel.solution.parameters,
        "sites": [site for site, name in selection.variant.sites.items() if name == kernel.name],
        "runs_expected": selection.variant.expected.get(kernel.name, 0),
        "runs_seen": seen_runs(trial.evaluation).get(kernel.name, 0) if trial else 0,
        "alone": {
            "evidence": alone.evidence.value,
            "speedup": _dump(alone.performance)["speedup"] if alone.performance else {},
        }
        if alone
        else None,
    }


def _left_out(kernel: Promoted) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "definition": kernel.definition.name,
        "solution": kernel.solution.hash,
        "sites": [site["name"] for site in kernel.sites],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    evaluation = trial.evaluation
    return {
        "mode": trial.variant.mode,
        "kernels": sorted(trial.variant.kernels),
        "moves": list(trial.variant.moves),
        "level": evaluation.level.value,
        "status": evaluation.status.value,
        "evidence": evaluation.evidence.value,
        "outcome": describe(trial),
        "reasons": list(evaluation.reasons),
        "performance": _performance(trial),
        "problems": list(trial.problems),
        "solution": evaluation.solution,
    }


def _interval(value: Mapping[str, float] | Interval) -> str:
    data = value.model_dump() if isinstance(value, Interval) else value
    return f"{data['point']:.2f}x [{data['low']:.2f}, {data['high']:.2f}]"


def report_markdown(data: Mapping[str, Any]) -> str:
    """Render the report as Markdown."""
    summary = data["summary"]
    lines = [f"# {data['target']['name']}, optimized", "", f"{summary[:1].upper()}{summary[1:]}.", ""]
    lines += _headline(data)
    if data["tokens_per_second"]:
        lines += [*_rate_table(data["tokens_per_second"]), ""]
    if data["shapes"]:
        lines += shape_table(data["shapes"])
    if data["kernels"]:
        lines += ["## Kernels", "", *table(_KERNELS, map(_kernel_row, data["kernels"])), ""]
    precision = data.get("precision") or {"installed": False, "summary": ""}
    if precision["summary"]:
        lines += [f"Lower precision: {precision['summary']}.", ""]
    if data["packed"]:
        how = f"in {precision['precision']}" if precision["installed"] else "from packed weights"
        lines += [f"Matmuls computed {how}: {', '.join(data['packed'])}.", ""]
    if data["moves"]:
        lines += ["## Moves", "", *map(_move, data["moves"]), ""]
    if data["trials"]:
        lines += ["## What was tried", "", *table(_TRIALS, map(_tried, data["trials"])), ""]
    reasons = [
        *data["evidence"]["reasons"],
        *(f"{site} keeps the original code: {why}" for site, why in data["sites_left_as_they_were"].items()),
        *(f"{k['name']} was left out" for k in data["left_out"]),
        *data["profile"]["notes"],
        *data["notes"],
    ]
    if reasons:
        lines += ["## Notes", "", *(f"- {reason}" for reason in dict.fromkeys(reasons)), ""]
    lines += _provenance(data)
    if (seconds := data.get("first_verdict_s")) is not None:
        lines += [f"First verdict: {seconds:.0f} s after the profile.", ""]
    return "\n".join(lines)


def _tried(trial: Mapping[str, Any]) -> tuple[object, ...]:
    parts = ", ".join([*trial["kernels"], *trial["moves"]]) or "no kernels"
    return f"{trial['mode']}: {parts}", *(trial[column] for column in _TRIALS[1:])


def _move(move: Mapping[str, Any]) -> str:
    if move["kept"]:
        return f"- {move['kind']}: kept, in {move['places']} place{'s' if move['places'] > 1 else ''}"
    return f"- {move['kind']}: dropped, {move['why']}"


def _headline(data: Mapping[str, Any]) -> list[str]:
    performance = data["performance"]
    lines: list[str] = []
    if performance:
        own = "this artifact", f"{performance['latency_s'] * 1e3:.3f} ms", ""
        others = [
            (name, f"{seconds * 1e3:.3f} ms", _interval(performance["speedup"][name]))
            for name, seconds in performance["baseline_s"].items()
            if name in performance["speedup"]
        ]
        lines += table(("", "median of a forward", "speedup, 95% interval"), [own, *others])
        control = _interval(performance["control"])
        lines += [
            "",
            f"Interleaved in {performance['blocks']} blocks over {performance['processes']} fresh process "
            f"groups; the same baseline against itself: {control}.",
            "",
        ]
    lines += [f"Evidence: **{data['evidence']['level']}**; {data['evidence']['engagement']}.", ""]
    if calls := which_calls(data["mode"]):  # of a report of an earlier version too
        lines += [calls, ""]
    return lines


def _rate_table(rates: Mapping[str, Mapping[str, float]]) -> list[str]:
    rows = [
        (baseline_name(name), *(f"{found[name]:,.1f}" for found in rates.values()))
        for name in next(iter(rates.values()))
    ]
    return [
        *table(("tokens per second", *rates), rows, numbers=True),
        "",
        "Times of a forward are means over the prefill and all decode steps of a generation.",
    ]


def _kernel_row(kernel: Mapping[str, Any]) -> tuple[object, ...]:
    alone = kernel["alone"] or {"speedup": {}}
    speedups = ", ".join(f"{_interval(i)} over {name}" for name, i in alone["speedup"].items()) or "-"
    seen = f"{kernel['runs_seen']} of {kernel['runs_expected']}"
    return kernel["name"], kernel["definition"], len(kernel["sites"]), seen, speedups, kernel["author"]


def _provenance(data: Mapping[str, Any]) -> list[str]:
    provenance, device = data["provenance"], data["provenance"]["device"]
    tools = ", ".join(f"{name} {version}" for name, version in device["toolchain"].items())
    return [
        "## Provenance",
        "",
        f"Target {data['target']['origin']} ({data['target']['hash']}); "
        f"AgentForge {provenance['agentforge']}; {provenance['date']}; "
        f"{device['name']}, {device['architecture']}, {device['threads']} threads; {tools}.",
        "",
    ]
