"""The referee's defences, each with what takes it away and the hostile candidates that it is there for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WEAKENED = Path(__file__).resolve().parent / "weakened"
"""On the search path of workers that lack a defence; see its sitecustomize."""


@dataclass(frozen=True)
class Wrapped:
    """Replacement made from the original."""

    make: Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Mutant:
    """One defence taken away."""

    name: str
    what: str
    """What the referee no longer does."""
    patches: tuple[tuple[str, Any], ...]
    """`module:attribute` and what stands there instead."""
    noticed_by: tuple[str, ...]
    """Parts of names of hostile candidates, one of which must get through."""
    sandbox: str = "auto"
    full: bool = False
    """The defence works at level full alone."""
    workers: str = ""
    """What the workers' own interpreters leave out."""
    covered_by: str = ""
    """Why nothing gets through all the same: another defence sees all that this one sees."""

    @property
    def fresh(self) -> bool:
        """Whether it needs forkservers of its own."""
        return bool(self.workers) or self.sandbox != "auto"


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _passes(*args: Any, **kwargs: Any) -> str:
    return "taken away"


def _no_doubt(*args: Any, **kwargs: Any) -> str:
    return ""


def _never(*args: Any, **kwargs: Any) -> bool:
    return False


def _none(*args: Any, **kwargs: Any) -> int:
    return 0


def _same_bits(bits: int) -> int:
    return 42


def _all_told(*args: Any, **kwargs: Any) -> Any:
    from agentforge.harness.taskcheck import TaskReport

    return TaskReport()


def _loose(original: Callable[..., Any]) -> Callable[..., Any]:
    """Bounds of a fixed absolute 1e-2, as public harnesses have them."""
    from dataclasses import replace

    from agentforge.harness.tolerance import Bound

    def exactness(*args: Any, **kwargs: Any) -> Any:
        return [
            replace(x, bound=Bound(1e9, 0.0, 1e-2, x.bound.reference_error)) if x.bound.relative else x
            for x in original(*args, **kwargs)
        ]

    return exactness


def _by_norm_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    from dataclasses import replace

    return lambda *args, **kwargs: replace(original(*args, **kwargs), excess=0.0)


def _nan_is_right(original: Callable[..., Any]) -> Callable[..., Any]:
    """What is not finite counts as equal."""

    def errors(a: Any, b: Any) -> Any:
        import torch

        return original(torch.where(torch.isfinite(a), a, b), b)

    return errors


def _prepared_once(original: Callable[..., Any]) -> Callable[..., Any]:
    """All calls see the same content."""

    def prepare(self: Any) -> Any:
        if not hasattr(self, "prepared_by_mutant"):
            self.prepared_by_mutant = original(self)
        return self.prepared_by_mutant

    return prepare


class _Any:
    """Equal to every identifier."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def _any_reply(original: Callable[..., Any]) -> Callable[..., Any]:
    """Whatever arrives is taken for the answer to what was asked."""
    from dataclasses import replace

    def wait(self: Any, timeout_s: float) -> Any:
        message = original(self, timeout_s)
        return replace(message, body={**message.body, "id": _Any()})

    return wait


def _plain_names(original: Callable[..., Any]) -> Callable[..., Any]:
    """Kernels whose names begin with an underscore are left alone."""

    def neuter(path: Path) -> list[str]:
        content = path.read_bytes()
        names: list[str] = original(path)
        if all(name.startswith("_") for name in names):
            path.write_bytes(content)
            return []
        return names

    return neuter


_H = "agentforge.harness"
_NEVER_ENGAGED = (f"{_H}.examination:Examination._engagement", _passes)

DEFENCES: tuple[Mutant, ...] = (
    Mutant("absolute-tolerance", "a fixed absolute 1e-2 in the place of the reference's own error",
           ((f"{_H}.bench:Bench._exactness", Wrapped(_loose)), (f"{_H}.bench:examine_task", _all_told)),
           ("softmax_quantised", "l2_noise")),
    Mutant("norm-alone", "elements are not looked at one by one",
           ((f"{_H}.judge:measure", Wrapped(_by_norm_alone)),), ("one_element_slightly",)),
    Mutant("nan-is-right", "what is not finite counts as equal",
           ((f"{_H}.tolerance:_errors", Wrapped(_nan_is_right)),), ("f12_nan/one_nan", "f12_nan/all_nan")),
    Mutant("weak-tasks-unseen", "nobody asks whether the task can tell right from wrong",
           ((f"{_H}.bench:examine_task", _all_told),), ("f01_constant_within_tolerance/always_zero",)),
    Mutant("form-unchecked", "shape and dtype are not compared",
           ((f"{_H}.judge:Judge._check_form", _nothing), (f"{_H}.judge:Judge.check_part", _nothing)),
           ("int32_index", "float64_output")),
    Mutant("any-tensor", "tensor subclasses are taken for tensors", (),
           ("lazy_subclass", "lazy_metaclass", "lying_subclass"), workers="any-tensor",
           covered_by="what is not in memory when the answer comes is read all the same, and is wrong"),
    Mutant("constant-weights", "weights keep their constant initial values", (),
           ("rmsnorm_own_ones", "layernorm_defaults"), workers="constant-weights"),
    Mutant("outputs-may-overlap", "outputs that overwrite one another are not looked for",
           ((f"{_H}.stages.behaviour:Determinism._keep_alive", _nothing),
            (f"{_H}.spotcheck:SpotChecks.unchanged", _nothing)),
           ("f20_static_output/one_buffer", "fresh_view_of_one_buffer")),
    Mutant("outputs-may-be-inputs", "outputs that share memory with inputs are not looked for",
           ((f"{_H}.party:Party.aliases", _never),), ("private_copy_of_the_file",)),
    Mutant("timed-outputs-may-be-inputs", "where the output of a timed call lies is not looked at",
           ((f"{_H}.timing:Timer._look_where_it_lies", _nothing),), ("private_copy_of_the_file",)),
    Mutant("inputs-may-change", "inputs are not looked at after a call",
           ((f"{_H}.stages.behaviour:Mutation.run", _passes),), ("answer_in_place", "right_then_mutate")),
    Mutant("late-work", "processor time and processes after the answer are not looked at",
           ((f"{_H}.stages.behaviour:Aftermath.run", _passes), (f"{_H}.process:Worker.stop_others", _none)),
           ("spinning_threads", "subprocess_daemon")),
    Mutant("no-attestation", "nobody asks which kernels ran, nor takes them out",
           ((f"{_H}.stages.behaviour:Attestation.run", _passes), _NEVER_ENGAGED),
           ("compiled_never_launched", "restate_it", "f45_triton/decoy_launched")),
    Mutant("kernels-may-idle", "kernels are not taken out to see whether they do the work",
           (_NEVER_ENGAGED,), ("f35_decoy/underscore", "f35_decoy/indirect")),
    Mutant("kernels-by-name", "kernels with unusual names are not taken out",
           ((f"{_H}.neuter:neuter", Wrapped(_plain_names)),), ("f35_decoy/underscore",),
           covered_by="a kernel that could not be taken out is a suspicion where own ones are asked for"),
    Mutant("timed-calls-unchecked", "outputs of timed calls are not compared",
           ((f"{_H}.spotcheck:SpotChecks.compare", _nothing),), ("twenty_five", "f18_call_counter/hundred")),
    Mutant("untimed-sample", "the clock does not wait for a sample of the answer",
           ((f"{_H}.party:Party._sample", _nothing),), ("fill_before_fetch", "cpp_last_row_late"),
           covered_by="processor time after the answer is seen, and more of every output is read"),
    Mutant("inputs-repeat", "every call sees the same content",
           ((f"{_H}.inputs:Inputs.prepare", Wrapped(_prepared_once)),
            (f"{_H}.stages.correctness:Sharpened.run", _passes)), ("f16_memo_by_address/data_ptr",)),
    Mutant("one-weight-for-all", "contents are mixed by one weight for all elements",
           ((f"{_H}.recipes:_SPREAD", 0.0),), ("span_of_the_base",)),
    Mutant("calls-known-by-content", "unusual contents are asked for in checks alone",
           ((f"{_H}.timing:_UNUSUAL_SHARE", -1.0),),
           ("careful_when_slow", "age_of_the_content", "note_for_the_successor"), full=True),
    Mutant("seeds-are-known", "inputs and weights are drawn from seeds that can be guessed",
           (("secrets:randbits", _same_bits),), ("f21_precompute/guess_seed",)),
    Mutant("any-reply", "answers need not name what they answer",
           ((f"{_H}.party:Party._await", Wrapped(_any_reply)),), ("early_reply", "reply_ahead"),
           covered_by="an answer ahead of its question is one to other contents, and so wrong"),
    Mutant("claims-unchecked", "what its process says of its time is not compared with ours",
           ((f"{_H}.examination:Examination._compare_clocks", _nothing),),
           ("frozen_perf_counter", "lying_ns"),
           covered_by="a claim decides nothing, and a clock that stands still spoils the attestation too"),
    Mutant("no-sharper-contents", "contents that tell wrong answers which usual ones do not are not tried",
           ((f"{_H}.stages.correctness:Sharpened.run", _passes),), ("sum_of_halves",)),
    Mutant("no-stability", "ordinary inputs alone",
           ((f"{_H}.stages.correctness:Stability.run", _passes),
            (f"{_H}.stages.correctness:Sharpened.run", _passes)),
           ("softmax_no_max", "variance_by_squares", "sample_of_the_range"), full=True),
    Mutant("no-edges", "no small integers, of which sums are exact",
           ((f"{_H}.stages.properties:Edges.run", _passes),), ("last_of_a_million",), full=True),
    Mutant("no-relations", "no metamorphic relations",
           ((f"{_H}.stages.properties:Relations.run", _passes),), ("one_row", "rare_argmax"), full=True,
           covered_by="bounds from the reference's own error tell every case of the corpus"),
    Mutant("no-types", "the definition's other types are not tried",
           ((f"{_H}.stages.properties:Types.run", _passes),), ("f46_beyond_the_call/wrong_in_bfloat16",)),
    Mutant("no-gradients", "backward passes are not compared",
           ((f"{_H}.stages.backward:Gradients.run", _passes),), ("f46_beyond_the_call/wrong_gradient",)),
    Mutant("no-variants", "the workload's shapes and strides alone",
           ((f"{_H}.variants:Variants.run", _passes),), ("even_rows", "multiple_of_eight"), full=True),
    Mutant("no-endurance", "no calls beyond those that timing needs",
           ((f"{_H}.examination:endure", _passes),), ("f18_call_counter/four_hundred",), full=True),
    Mutant("no-sanitizers", "no sanitized builds",
           ((f"{_H}.stages.memory_safety:MemorySafety.run", _passes),),
           ("cpp_scratch_one_past", "cpp_racy_counter"), full=True),
    Mutant("one-thread-count", "no other number of threads is tried",
           ((f"{_H}.examination:other_thread_counts", _passes),), ("cpp_four_threads_assumed",), full=True),
    Mutant("no-physics", "a time that nobody can reach is not doubted",
           ((f"{_H}.physics:check", _no_doubt),), ("f22_after_the_timer/fill_before_fetch",),
           covered_by="handing a call over takes longer than the fastest possible call of the corpus's size"),
    Mutant("no-filter", "no system-call filter", (),
           ("nested_namespace_burner", "mount_and_setuid"), workers="no-filter"),
    Mutant("shared-network", "the worker has the machine's network", (), ("f42_escape/network",),
           sandbox="namespaces", workers="shared-network"),
    Mutant("shared-files", "the worker sees the machine's files", (), ("write_outside",),
           sandbox="namespaces", workers="shared-files"),
    Mutant("limits-alone", "resource limits alone, no namespaces", (),
           ("write_outside", "f42_escape/network"), sandbox="rlimits"),
)  # fmt: skip
"""Not here: limits on memory, processes and time (taking them away would take the machine along), and what
guards honest kernels (A/A' control, steal, fresh process groups)."""
