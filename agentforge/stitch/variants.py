"""The ways in which a model can be put together again, each as a `Solution` of the whole model."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentforge.harness.child import ChildFailure, run_child
from agentforge.schema import Definition, Profile, Solution, Target, TargetError

from .files import Mode, as_solution, kernel_name, stitched_files
from .runtime.graph import REPLAY
from .runtime.products import PACKED
from .runtime.streams import STREAMS
from .streams import WORTH_TRYING

_CHILD_TIMEOUT_S = 600.0
_AROUND = {"compile": " under torch.compile", "graph": " in a CUDA graph", "streams": " on several streams",
           "packed": " with packed weights"}  # fmt: skip


class _Key(NamedTuple):
    """What is rewritten: kernels of a selection, whether what has none is too, whether on several streams."""

    kernels: frozenset[str]
    everything: bool = False
    packed: bool = False
    streams: bool = False


@dataclass(frozen=True)
class Variant:
    """One way to put the model together."""

    mode: Mode
    kernels: frozenset[str]
    """Names of the kernels that are in it."""
    solution: Solution
    sites: Mapping[str, str] = field(default_factory=dict)
    """Call site to kernel."""
    expected: Mapping[str, int] = field(default_factory=dict)
    """Runs of each kernel in one forward of the model."""
    packed: frozenset[tuple[str, str]] = frozenset()
    """Unit and node of each product that is computed from a packed weight."""

    @property
    def label(self) -> str:
        """For people."""
        what, *ways = self.mode.split("+")
        if what != "kernels":
            return "torch.compile" if what == "compile" else what
        number = len(self.kernels)
        what = f"{number} kernel{'s' if number > 1 else ''}" if number else "the model"
        return what + "".join(_AROUND[way] for way in ways)


@dataclass(frozen=True)
class Promoted:
    """A bottleneck with the solution that is to take its place."""

    name: str
    definition: Definition
    solution: Solution
    sites: tuple[dict[str, Any], ...]
    """`name`, `unit`, `nodes` and `kernel` of each call site."""
    time_s: float
    """Seconds of all its call sites in one eager forward."""


def promoted(profile: Profile, chosen: Mapping[str, Solution]) -> dict[str, Promoted]:
    """The chosen solutions by kernel name, with the call sites that they serve.

    Args:
        profile: of the target.
        chosen: solution by its definition's hash.
    """
    found: dict[str, Promoted] = {}
    for bottleneck in profile.bottlenecks:
        solution = chosen.get(bottleneck.definition.hash)
        if solution is None:
            continue
        name = kernel_name(bottleneck.definition)
        sites = tuple(
            {"name": site.name, "unit": site.unit, "nodes": list(site.nodes), "kernel": name}
            for site in bottleneck.call_sites
        )
        found[name] = Promoted(name, bottleneck.definition, solution, sites, bottleneck.time_s)
    return found


class Variants:
    """Makes variants of one target; rewriting happens in a child process and is remembered.

    Args:
        target: the model.
        kernels: what may be put in.
        progress: receives lines of progress.
        measured: of the model's call sites (see `streams.measured`); without it there are no streams.
    """

    def __init__(
        self,
        target: Target,
        kernels: Mapping[str, Promoted],
        progress: Callable[[str], None] | None = None,
        measured: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._target = target
        self._kernels = kernels
        self._measured = list(measured)
        self._progress = progress
        self._rewritten: dict[_Key, dict[str, Any]] = {}
        self._outline: dict[str, Any] | None = None
        self._calls: dict[str, int] = {}
        self.notes: list[str] = []
        self.refused: dict[str, str] = {}
        """Call site to the reason why it stays as it was."""

    def prepare(self, selections: Sequence[Collection[str]], *, packed: bool = False) -> None:
        """Rewrite what kernels are put into, for several selections of them, in one child process.

        Args:
            selections: names of kernels.
            packed: the first of them with packed weights too.

        Raises:
            TargetError: the model cannot be loaded any more, or its capture failed.
        """
        keys = [_Key(frozenset(names)) for names in selections]
        self._rewrite([*keys, *(key._replace(everything=True, packed=True) for key in keys[:packed])])

    def _rewrite(self, keys: Sequence[_Key]) -> None:
        wanted = [key for key in dict.fromkeys(keys) if key not in self._rewritten]
        if not wanted and self._rewritten:
            return
        payload = {
            "definition": self._target.definition.model_dump(mode="json"),
            "device": self._target.device,
            "sites": [site for kernel in self._kernels.values() for site in kernel.sites],
            "measured": self._measured,
            "selections": [{**key._asdict(), "kernels": sorted(key.kernels)} for key in wanted],
        }
        try:
            answer = run_child(
                "agentforge.stitch.child:rewrite_target",
                payload,
                timeout_s=_CHILD_TIMEOUT_S,
                memory_bytes=None if self._target.device == "cpu" else 0,
                progress=self._progress,
            )
        except ChildFailure as failure:
            raise TargetError(
                f"{self._target.name} could not be captured for stitching: {failure}; "
                "profile it again, and see that the file did not change meanwhile"
            ) from failure
        self._outline = answer["outline"]
        self._calls = answer["calls"]
        self.notes = list(dict.fromkeys([*self.notes, *answer["notes"]]))
        self._rewritten.update(zip(wanted, answer["selections"], strict=True))
        for selection in answer["selections"]:
            self.refused.update(selection["refused"])

    def with_kernels(self, kernels: Collection[str], mode: Mode) -> Variant | None:
        """The model with these kernels; None where none could be put in, or streams would gain too little."""
        ways = mode.split("+")
        streams, packed = "streams" in ways, "packed" in ways
        key = _Key(frozenset(kernels), streams or packed or "graph" in ways, packed, streams)
        if not key.kernels and not key.everything:
            return None
        # One child for a graph and for the same with streams.
        self._rewrite([key, key._replace(streams=True)] if key.everything and self._measured else [key])
        rewritten = self._rewritten[key]
        if streams and rewritten["saved_s"] < WORTH_TRYING * self._measured_s():
            return None
        expected: dict[str, int] = {}
        if "graph" in ways:
            expected[REPLAY] = self._calls_of(rewritten, "replayable")
        if streams:
            expected[STREAMS] = self._calls_of(rewritten, "streams")
        if packed:
            expected[PACKED] = self._calls_of(rewritten, "products")
        if not all(expected.values()) or not (expected or rewritten["sites"]):
            return None
        texts = dict(rewritten["texts"])
        if rewritten["constants"]:
            texts["constants.json"] = json.dumps(rewritten["constants"])
        for plan in rewritten["units"]:
            calls = self._calls[plan["path"]]
            for site in plan["calls"].values():
                expected[site["kernel"]] = expected.get(site["kernel"], 0) + site["sites"] * calls
        return self._variant(mode, rewritten["units"], texts, rewritten["sites"], expected)

    def _calls_of(self, rewritten: Mapping[str, Any], having: str) -> int:
        """How often, in one forward of the model, its units have this: a property, or a list of something."""
        numbers = {plan["path"]: plan[having] for plan in rewritten["units"] if plan[having]}
        return sum(self._calls[path] * (len(n) if isinstance(n, list) else 1) for path, n in numbers.items())

    def _measured_s(self) -> float:
        """Seconds of the GPU's work in one forward."""
        return float(sum(site["time_s"] * self._calls.get(site["unit"], 0) for site in self._measured))

    def compiled(self) -> Variant | None:
        """Plain torch.compile; None where the model's call cannot be dispatched on."""
        self.prepare([])
        return self._variant("compile", [self._outline], {}, {}, {}) if self._outline else None

    def eager(self) -> Variant:
        """The model as it was."""
        return self._variant("eager", [], {}, {}, {})

    def _variant(
        self,
        mode: Mode,
        units: Sequence[Mapping[str, Any]],
        texts: Mapping[str, str],
        sites: Mapping[str, str],
        expected: Mapping[str, int],
    ) -> Variant:
        solutions = {name: kernel.solution for name, kernel in self._kernels.items()}
        files = stitched_files(self._target, mode, units, texts, solutions)
        solution = as_solution(self._target, f"{self._target.name} ({mode})", files)
        packed = frozenset((plan["path"], node) for plan in units for node in plan["products"])
        return Variant(mode, frozenset(sites.values()), solution, sites, expected, packed)
