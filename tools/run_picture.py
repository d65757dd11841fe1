"""Draw docs/images/run.svg: the result of a run on record, as rich shows it.

    python tools/run_picture.py [RESULT.json]

RESULT.json is a file that benchmarks/end_to_end.py wrote, by default that of examples/llama_block.py.
"""

from __future__ import annotations

import argparse
import io
import json
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

from agentforge.analysis import Report
from agentforge.schema import baseline_name
from agentforge.views import output
from agentforge.views import text as _text

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "llama_block.json"
PICTURE = ROOT / "docs" / "images" / "run.svg"
COLUMNS = 108
"""Narrow enough to read on a page."""


def draw(result: Path) -> str:
    """The picture of the first run in a result file, as SVG."""
    entry = json.loads(result.read_text())["results"][0]
    fields = {name: value for name, value in entry["result"].items() if name != "headline"}
    report = Report.model_validate(fields)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ agentforge optimize {report.run.origin}", style="bold green"))
    console.print(Text(report.headline, style="bold"))
    console.print(_end_to_end(report))
    console.print(_regions(report))
    console.print(Text(f"{report.attempts} attempt(s) in {report.seconds:.0f} s; {report.stopped}"))
    title = f"{report.run.name}: {entry['seconds']:.0f} s on {report.run.device}, no GPU"
    return re.sub(r"[ \t]+\n", "\n", console.export_svg(title=title, unique_id="run"))


def _end_to_end(report: Report) -> object:
    evaluation = report.end_to_end
    if evaluation is None or evaluation.performance is None:
        return Text(report.summary)
    performance = evaluation.performance
    rows = (
        (
            baseline_name(name),
            _text.seconds(before),
            _text.seconds(performance.latency_s),
            str(performance.speedup[name]),
        )
        for name, before in performance.baseline_s.items()
    )
    return output.grid(["whole model, against", "before", "after", "speedup, 95 %"], rows)


def _regions(report: Report) -> object:
    rows = (
        (
            region.name,
            f"{region.share:.1%}",
            str(region.speedup["eager"]) if "eager" in region.speedup else "",
            f"kernel: {region.strategy}" if region.calls is not None else region.outcome,
        )
        for region in report.regions
    )
    return output.grid(["part", "share", "alone, over eager", "what runs now"], rows)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("result", nargs="?", type=Path, default=RESULT)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(parser.parse_args().result))
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
