"""Build variants of a model, each as a `Solution` of the whole model."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentforge.isolation.child_process import ChildFailure, run_child
from agentforge.profiling.reasons import reason_of
from agentforge.schema import Definition, MoveKind, Profile, Solution, Target, TargetError, baseline_name

from .files import Mode, as_solution, kernel_name, stitched_files
from .graph.streams import WORTH_TRYING
from .runtime.branches import STREAMS
from .runtime.derived import DERIVED
from .runtime.graph import REPLAY
from .runtime.products import LOWERED, PACKED, WAYS

_CHILD_TIMEOUT_S = 600.0
_AROUND = {"compile": " under torch.compile", "graph": " in a CUDA graph", "streams": " on several streams",
           "packed": " with packed weights", "bf16": " with products in bfloat16",
           "int8": " with products in int8"}  # fmt: skip


class _Key(NamedTuple):
    """One rewriting: which kernels, also units without kernels, packed weights, several streams, moves."""

    kernels: frozenset[str]
    everything: bool = False
    packed: bool = False
    streams: bool = False
    moves: tuple[MoveKind, ...] = ()


def _key(kernels: Collection[str], mode: Mode, moves: Collection[MoveKind] = ()) -> _Key:
    ways = mode.split("+")
    streams, packed = "streams" in ways, "packed" in ways or not WAYS.keys().isdisjoint(ways)
    everything = streams or packed or not {"graph", "compile"}.isdisjoint(ways) or bool(moves)
    chosen = tuple(kind for kind in MoveKind if kind in moves)
    return _Key(frozenset(kernels), everything, packed, streams, chosen)


def _key_of(selection: Mapping[str, Any]) -> _Key:
    """The key of a selection as the child process names it."""
    chosen = tuple(kind for kind in MoveKind if kind in selection["moves"])
    return _Key(**{**selection, "kernels": frozenset(selection["kernels"]), "moves": chosen})


@dataclass(frozen=True)
class Variant:
    """One variant of the model."""

    mode: Mode
    kernels: frozenset[str]
    """Names of its kernels."""
    solution: Solution
    sites: Mapping[str, str] = field(default_factory=dict)
    """Kernel by call site."""
    expected: Mapping[str, int] = field(default_factory=dict)
    """Expected runs of each kernel in one forward of the model."""
    packed: frozenset[tuple[str, str]] = frozenset()
    """Unit and node of each product and convolution computed from a packed weight."""
    moves: Mapping[MoveKind, int] = field(default_factory=dict)
    """Number of places in one forward of each move that was carried out."""
    ranged: bool = False
    """True if it has units for ranges of shapes."""
    compiled: tuple[str, ...] = ()
    """Units that torch.compile runs between the kernels."""
    eager: tuple[str, ...] = ()
    """Units that it leaves as they are, though it runs others."""
    way: str = ""
    """Its mode for the units that it compiles, as baselines are named; empty for the default."""

    @property
    def label(self) -> str:
        """Short description for people."""
        what, *ways = self.mode.split("+")
        if what != "kernels":
            return baseline_name("+".join(ways) or what)
        number = len(self.kernels)
        what = f"{number} kernel{'s' if number > 1 else ''}" if number else "the model"
        moves = ", ".join(kind.value.replace("_", " ") for kind in self.moves)
        if self.eager:
            what += f" ({', '.join(map(repr, self.eager))} eager)"
        what += "".join(_AROUND[way] for way in ways) + (f" ({self.way})" if self.way else "")
        return what + (f" and moves ({moves})" if moves else "")


@dataclass(frozen=True)
class Promoted:
    """A bottleneck with the solution that replaces it."""

    name: str
    definition: Definition
    solution: Solution
    sites: tuple[dict[str, Any], ...]
    """`name`, `unit`, `nodes` and `kernel` of each call site."""
    time_s: float
    """Time of all its call sites in one eager forward, in seconds."""


def promoted(profile: Profile, chosen: Mapping[str, Solution]) -> dict[str, Promoted]:
    """The chosen solutions by kernel name, with their call sites."""
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


class VariantBuilder:
    """Builds variants of one target. A child process rewrites the model; results are cached.

    Args:
        measured: measured call sites (see `streams.measured`); without them, streams are not tried.
        end: monotonic time at which no rewriting goes on; None for no limit.
    """

    def __init__(
        self,
        target: Target,
        kernels: Mapping[str, Promoted],
        progress: Callable[[str], None] | None = None,
        measured: Sequence[Mapping[str, Any]] = (),
        end: float | None = None,
    ) -> None:
        self._target = target
        self._kernels = kernels
        self._measured = list(measured)
        self._progress = progress
        self._end = end
        self._rewritten: dict[_Key, dict[str, Any]] = {}
        self._outline: dict[str, Any] = {}
        self._calls: dict[str, int] = {}
        self.notes: list[str] = []
        self.refused: dict[str, str] = {}
        """Call sites that keep the original code, with the reason."""
        self.ranges = True
        """Whether variants have units for ranges of shapes, if the target is a range."""

    def with_solutions(self, kernels: Mapping[str, Promoted], end: float | None = None) -> VariantBuilder:
        """A builder with other solutions at the same call sites: the model need not be rewritten again.

        Args:
            end: see the class.
        """
        other = copy(self)
        other._kernels, other._end = kernels, end
        return other

    def prepare(
        self,
        selections: Sequence[Collection[str]],
        *,
        packed: bool = False,
        moves: Collection[MoveKind] = (),
    ) -> None:
        """Rewrite the model for several selections of kernels in one child process.

        Args:
            packed: rewrite the first selection with packed weights too.
            moves: rewrite the first selection, and the model without kernels, with these moves too, and the
                first selection without one of those that find a place.

        Raises:
            TargetError: the model can no longer be loaded or captured.
            TimeEnded: the time is over.
        """
        modes: tuple[Mode, ...] = ("kernels", "kernels+packed") if packed else ("kernels",)
        keys = [_key(names, "kernels") for names in selections]
        keys += [_key(names, "kernels+compile") for names in selections[:1] if names]
        keys += [_key(names, mode) for names in selections[:1] for mode in modes[1:]]
        moved: list[Collection[str]] = [*selections[:1], ()] if moves else []
        keys += [_key(names, mode, moves) for names in moved for mode in modes]
        self._rewrite(keys, fewer=[_key(names, mode, moves) for names in moved[:1] for mode in modes])

    def prepare_moves(
        self, kernels: Collection[str], mode: Mode, choices: Sequence[Collection[MoveKind]]
    ) -> None:
        """Rewrite the model for several choices of moves in one child process, unless `prepare` did."""
        self._rewrite([_key(kernels, mode, moves) for moves in choices])

    def _rewrite(self, keys: Sequence[_Key], fewer: Collection[_Key] = ()) -> None:
        """Rewrite the model for these keys; for those in `fewer` also without one of the moves."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self._rewritten]
        if not wanted and self._outline:
            return
        payload = {
            "target": self._target.model_dump(mode="json"),
            "sites": [site for kernel in self._kernels.values() for site in kernel.sites],
            "measured": self._measured,
            "selections": [{**key._asdict(), "kernels": sorted(key.kernels)} for key in wanted],
            "fewer": [number for number, key in enumerate(wanted) if key in fewer],
        }
        try:
            answer = run_child(
                "agentforge.stitch.graph.child:rewrite_target",
                payload,
                timeout_s=_CHILD_TIMEOUT_S,
                end=self._end,
                memory_bytes=None if self._target.device == "cpu" else 0,
                progress=self._progress,
            )
        except ChildFailure as failure:
            raise TargetError(
                f"{self._target.name} could not be captured for stitching: {reason_of(failure)}; "
                "if its file changed since it was profiled, profile it again"
            ) from failure
        self._outline = answer["outline"]
        self._calls = answer["calls"]
        self.notes = list(dict.fromkeys([*self.notes, *answer["notes"]]))
        made = [*wanted, *map(_key_of, answer["fewer"])]
        self._rewritten.update(zip(made, answer["selections"], strict=True))
        for selection in answer["selections"]:
            self.refused.update(selection["refused"])

    def with_kernels(
        self,
        kernels: Collection[str],
        mode: Mode,
        moves: Collection[MoveKind] = (),
        eager: Collection[str] = (),
        way: str = "",
    ) -> Variant | None:
        """Build the model with these kernels and moves.

        Args:
            eager: units that torch.compile leaves as they are.
            way: mode of torch.compile for the others, as baselines are named; empty for the default.

        Returns:
            None if no kernel could be installed, streams would gain too little, or no move finds a place.
        """
        key, ways = _key(kernels, mode, moves), mode.split("+")
        if not key.kernels and (not key.everything or ("compile" in ways and not moves)):
            return None
        # One child process rewrites the graph both with and without streams.
        self._rewrite([key, key._replace(streams=True)] if key.everything and self._measured else [key])
        rewritten = self._rewritten[key]
        found = {kind: rewritten["moves"][kind] for kind in key.moves if kind in rewritten["moves"]}
        if moves and not found:
            return None
        if key.streams and rewritten["saved_s"] < WORTH_TRYING * self._measured_s():
            return None
        expected: dict[str, int] = {}
        if "graph" in ways:
            expected[REPLAY] = self._calls_of(rewritten, "replayable")
        if key.streams:
            expected[STREAMS] = self._calls_of(rewritten, "branches")
        if key.packed or self._calls_of(rewritten, "products"):
            lowered = not WAYS.keys().isdisjoint(ways)
            expected[LOWERED if lowered else PACKED] = self._calls_of(rewritten, "products")
        if derived := self._calls_of(rewritten, "derived"):
            expected[DERIVED] = derived
        if not all(expected.values()) or not (expected or rewritten["sites"]):
            return None
        texts = dict(rewritten["texts"])
        if rewritten["constants"]:
            texts["constants.json"] = json.dumps(rewritten["constants"])
        for plan in rewritten["units"]:
            calls = self._calls[plan["unit"]]
            for site in plan["calls"].values():
                expected[site["kernel"]] = expected.get(site["kernel"], 0) + site["sites"] * calls
        # A compiler around the kernels would compile again at each shape.
        ranges = rewritten["ranges"] if self.ranges and mode == "kernels" else []
        units = rewritten["units"]
        if "compile" in ways:
            units = [{**plan, "compiled": plan["unit"] not in eager and (way or True)} for plan in units]
        return self._variant(mode, units, texts, rewritten["sites"], expected, found, ranges, way)

    def _calls_of(self, rewritten: Mapping[str, Any], having: str) -> int:
        """Number of times per forward that the model's units use this property or list."""
        numbers = {plan["unit"]: plan[having] for plan in rewritten["units"] if plan[having]}
        return sum(self._calls[unit] * (len(n) if isinstance(n, list) else 1) for unit, n in numbers.items())

    def _measured_s(self) -> float:
        """GPU time of one forward, in seconds."""
        return float(sum(site["time_s"] * self._calls.get(site["unit"], 0) for site in self._measured))

    def compiled(self, mode: Mode = "compile") -> Variant:
        """Build torch.compile in one of its modes."""
        self.prepare([])
        return self._variant(mode, [self._outline], {}, {}, {})

    def eager(self) -> Variant:
        """Build the original model."""
        return self._variant("eager", [], {}, {}, {})

    def _variant(
        self,
        mode: Mode,
        units: Sequence[Mapping[str, Any]],
        texts: Mapping[str, str],
        sites: Mapping[str, str],
        expected: Mapping[str, int],
        moves: Mapping[MoveKind, int] | None = None,
        ranges: Sequence[Mapping[str, Any]] = (),
        way: str = "",
    ) -> Variant:
        solutions = {name: kernel.solution for name, kernel in self._kernels.items()}
        files = stitched_files(self._target, mode, units, texts, solutions, ranges)
        solution = as_solution(self._target, f"{self._target.name} ({mode})", files)
        packed = frozenset((plan["unit"], node) for plan in units for node in plan["products"])

        def units_that_are(compiled: bool) -> tuple[str, ...]:
            return tuple(p["unit"] for p in units if "compiled" in p and bool(p["compiled"]) is compiled)

        return Variant(
            mode,
            frozenset(sites.values()),
            solution,
            sites,
            expected,
            packed,
            moves or {},
            ranged=bool(ranges),
            compiled=units_that_are(True),
            eager=units_that_are(False),
            way=way,
        )
