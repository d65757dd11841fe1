"""Published results: only a whole run with the default settings replaces them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any


def refuse_part(
    parser: argparse.ArgumentParser, options: argparse.Namespace, output: str, free: Collection[str] = ()
) -> None:
    """End with exit code 2 if other settings than the default ones would replace published results.

    Args:
        options: what the parser made of the command line.
        output: the option that names the file of results.
        free: names of options that change no result.
    """
    if getattr(options, output) != parser.get_default(output):
        return
    asked = [n for n, v in vars(options).items() if n not in free and v != parser.get_default(n)]
    if asked:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in asked)
        parser.error(f"the published results are of a run without {names}: name a file with --{output}")


def whole_or_elsewhere(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    results: Path,
    *,
    output: str = "out",
    free: Collection[str] = (),
) -> argparse.Namespace:
    """The command line, with an option for the file of results; only a whole run may write the published one.

    Args:
        output, free: as of `refuse_part`.
    """
    parser.add_argument(f"--{output}", type=Path, default=results)
    options = parser.parse_args(argv)
    refuse_part(parser, options, output, free)
    return options


def write_results(path: Path, content: Mapping[str, Any], *, whole: bool) -> None:
    """Write the results so far into a `.part` file beside the output, which a whole run replaces."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1) + "\n")
    if whole:
        part.replace(path)
