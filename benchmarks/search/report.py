"""What the documentation shows of the policy lab's results, and the curves as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from search.comparison import DEFAULT, LOOKS, UNITS, least_held_out


def table(result: Mapping[str, Any]) -> str:
    """The comparison on the held-out landscapes."""
    held_out, seeds = result["held_out"], result["seeds"]
    looks = [f"{what} {n}" for n in LOOKS for what in ("progress at", "over best-first at", "rank at")]
    rows = {}
    for name in held_out[str(LOOKS[0])]["share"]:
        needed = held_out["evaluations_to_best"][name]
        cells = [f"{needed[0]:.1f} [{needed[1]:.1f}, {needed[2]:.1f}]"]
        for look in (held_out[str(n)] for n in LOOKS):
            over = look["over_default"].get(name)
            cells += [
                _percent(look["share"][name]),
                _percent(over) if over else "",
                f"{look['friedman']['ranks'][name]:.1f}",
            ]
        rows[name] = cells
    tests = ", ".join(
        f"p = {test['p']:.2g} at {n} (Nemenyi: ranks differ from {test['critical_difference']:.1f} on)"
        if (test := held_out[str(n)]["friedman"])["p"] is not None
        else f"no test at {n}"
        for n in LOOKS
    )
    chosen = result["may_become_the_default"]
    few = f"undecided, {least_held_out(held_out[str(LOOKS[0])]['share'])} landscapes are needed"
    winners = few if chosen is None else ", ".join(chosen) or "none"
    said = (
        f"Held-out landscapes: {held_out['landscapes']}; {seeds} seeds, three proposers, 95 % intervals."
        f" Friedman's test: {tests}. Policies that may replace `{DEFAULT}`: {winners}."
        f" {result['provenance']['date'][:10]}, commit {result['provenance']['commit']}."
    )
    return _markdown(["evaluations to the best", *looks], rows) + f"\n{said}\n"


def budgets(result: Mapping[str, Any]) -> str:
    """Progress by dollars and by seconds on the landscapes that are not held out, for each proposer: they
    differ in price and pace, so their dollars and seconds are not pooled."""
    look, heads = LOOKS[0], list[str]()
    rows = {name: list[str]() for name in result["open"][str(look)]["share"]}
    for proposer in result["proposers"]:
        model, own = proposer["name"], result["by_proposer"][proposer["name"]]
        minutes, cost = own["seconds"]["at"] / 60, look * proposer["dollars"]
        heads += [f"{model}, ${cost:.2f}", f"{model}, {minutes:g} min"]
        for name, cells in rows.items():
            cells += [_percent(own[str(look)]["share"][name]), _percent(own["seconds"]["share"][name])]
    said = (
        f"Progress on the {result['open']['landscapes']} landscapes that are not held out, by proposer. All"
        f" attempts of a proposer cost the same dollars, so the first column of each is its progress after"
        f" {look} evaluations. The second one is its progress after that time on the simulated clock."
    )
    return f"{said}\n\n{_markdown(heads, rows)}"


def choice(shown: str, result: Mapping[str, Any]) -> str:
    """The table of policies with these figures in its last two columns; the other columns stay.

    Args:
        shown: the table as the page has it; a row begins with the policy's name.
    """
    head, rule, *rows = shown.splitlines()
    assert head.endswith("".join(f" | progress at {n}" for n in LOOKS) + " |")
    lines = [head, rule]
    for row in rows:
        kept = row.split("|")[1:-3]
        shares = [result["held_out"][str(n)]["share"][kept[0].strip(" `")] for n in LOOKS]
        lines.append(f"|{'|'.join(kept)}| {' | '.join(map(_percent, shares))} |")
    return "\n".join(lines) + "\n"


def _markdown(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    """A table with a row for each policy."""
    lines = [f"| policy | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    lines += [f"| `{name}` | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join(lines) + "\n"


def _percent(values: Sequence[float]) -> str:
    point, low, high = (f"{100 * x:.1f}" for x in values)
    return f"{point} % [{low}, {high}]"


def figure(result: Mapping[str, Any], path: Path) -> None:
    """Progress of all policies by evaluations, seconds and dollars, a row for each proposer, as a page."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    by_proposer = result["curves"]
    shown = make_subplots(
        rows=len(by_proposer), cols=len(UNITS), shared_yaxes=True, row_titles=list(by_proposer),
        y_title="progress: 0 is the mean, 1 the best",
    )  # fmt: skip
    for row, by_policy in enumerate(by_proposer.values(), start=1):
        for name, by_unit in by_policy.items():
            for column, unit in enumerate(UNITS, start=1):
                if unit in by_unit:
                    line = Scatter(x=by_unit[unit]["at"], y=by_unit[unit]["share"], name=name,
                                   legendgroup=name, showlegend=row == column == 1)  # fmt: skip
                    shown.add_trace(line, row=row, col=column)
        for column, unit in enumerate(UNITS, start=1):
            shown.update_xaxes(title_text=unit, row=row, col=column)
    shown.write_html(path, include_plotlyjs="cdn")
