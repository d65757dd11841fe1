"""Write the table of results into README.md, from benchmarks/results.

python tools/results_table.py            # write the table
python tools/results_table.py --check    # fail if the table in the file is not current
python tools/results_table.py --summary  # print the mean and the worst speedup over the best baseline

The summary is over the examples and benchmarks/problems/transformers. `benchmarks/end_to_end.py` writes the
result of `hf:.../t5.json` to benchmarks/results/t5.json.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from agentforge.schema import baseline_name  # noqa: E402
from tools.generated import ROOT, GeneratedPart  # noqa: E402

TABLE = GeneratedPart("README.md", "results", "tools/results_table.py")
RESULTS = ROOT / "benchmarks" / "results"
TRANSFORMERS = ROOT / "benchmarks" / "problems" / "transformers"

TITLES = {
    "gelu_bias_residual.py": "GELU + bias + residual, 4096 x 4096",
    "rmsnorm.py": "RMSNorm, 8192 x 4096",
    "cross_entropy.py": "cross-entropy, 4096 x 4096",
}
EXAMPLES = ("llama_block", "gpt2", "bert_mlm", "resnet", "dlrm")
ON_ANOTHER_MACHINE = ("llama_block_avx2",)
"""Results of the same files on a processor without AVX-512."""
BASELINES = ("eager", "compile", "freezing")
"""The columns; a result file has one entry for each."""


def table() -> str:
    """The tables in Markdown: one for each machine, with one row for each result on record."""
    names = [*EXAMPLES, *(name.removesuffix(".py") for name in TITLES), *ON_ANOTHER_MACHINE]
    machines: dict[str, list[dict[str, Any]]] = {}
    for name in names:
        found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        machines.setdefault(_machine(found["provenance"]), []).extend(sorted(found["results"], key=_title))
    return "\n".join(line for machine, entries in machines.items() for line in _lines(machine, entries))


def summary() -> str:
    """The geometric mean and the worst verified speedup over the best baseline, and which models lack one."""
    names = [*EXAMPLES, *(path.stem for path in sorted(TRANSFORMERS.glob("*.json")))]
    found = {name: gain for name in names if (gain := _over_best(RESULTS / f"{name}.json"))}
    lines = [f"{len(found)} of {len(names)} models have a verified speedup over their best baseline."]
    if found:
        mean = statistics.geometric_mean(gain["point"] for gain in found.values())
        worst = min(found, key=lambda name: found[name]["point"])
        lines.append(f"Geometric mean {mean:.2f}x; worst {_interval(found[worst])}, {worst}.")
    missing = ", ".join(name for name in names if name not in found)
    return "\n".join([*lines, f"Without one: {missing or 'none'}."])


def _over_best(path: Path) -> dict[str, float] | None:
    """The speedup over the baseline that was the hardest to beat; None without a result that proves one."""
    entries = json.loads(path.read_text(encoding="utf-8"))["results"] if path.is_file() else []
    speedups = [gain for entry in entries for gain in _speedups(entry).values()]
    return min(speedups, key=lambda gain: gain["point"], default=None)


def _lines(machine: str, entries: list[dict[str, Any]]) -> list[str]:
    """One table; a baseline that was never measured has no column."""
    measured = [name for name in BASELINES if any(name in _speedups(entry) for entry in entries)]
    head = ["model", *(f"over {baseline_name(name)}" for name in measured), "what the artifact runs"]
    rows = (_line(_row(entry, measured)) for entry in entries)
    return [f"{machine}:", "", _line(head), _line(["---"] * len(head)), *rows, ""]


def _machine(provenance: dict[str, Any]) -> str:
    device, architecture, threads = (provenance[name] for name in ("device", "architecture", "threads"))
    return f"{device} ({architecture}), {threads} threads, PyTorch {provenance['toolchain']['torch']}"


def _row(entry: dict[str, Any], baselines: list[str]) -> list[str]:
    speedups = _speedups(entry)
    return [_title(entry), *(_interval(speedups.get(name)) for name in baselines), _kept(entry["result"])]


def _speedups(entry: dict[str, Any]) -> dict[str, dict[str, float]]:
    result = entry["result"]
    performance = (result.get("end_to_end") or {}).get("performance") or {}
    speedups: dict[str, dict[str, float]] = performance.get("speedup", {}) if result.get("proven") else {}
    return speedups


def _interval(speedup: dict[str, float] | None) -> str:
    return "{point:.2f}x [{low:.2f}, {high:.2f}]".format_map(speedup) if speedup else ""


def _title(entry: dict[str, Any]) -> str:
    file: str = entry["file"]
    return TITLES.get(file, f"`examples/{file}`")


def _kept(result: dict[str, Any]) -> str:
    kind, _, way = result["mode"].partition("+")
    if kind != "kernels":
        return str(result["summary"].split("; ")[1])
    operators = dict.fromkeys(region["op_type"] for region in result["regions"] if region["calls"])
    packed = ["[packed weights](docs/stitch.md#packed-weights)"] if way == "packed" else []
    kernels = [f"kernels: {', '.join(operators)}"] if operators else []
    moves = [f"[moves](docs/stitch.md#moves): {', '.join(result['moves'])}"] if result.get("moves") else []
    rest = ["the rest under torch.compile"] if way == "compile" else []
    return "; ".join([*kernels, *packed, *moves, *rest])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    if "--summary" in sys.argv[1:]:
        print(summary())
    else:
        raise SystemExit(TABLE.main(table()))
