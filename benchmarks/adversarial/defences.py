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


def _nowhere(*args: Any, **kwargs: Any) -> frozenset[int]:
    return frozenset()


def _no_contents(*args: Any, **kwargs: Any) -> Any:
    return []


def _none(*args: Any, **kwargs: Any) -> int:
    return 0


def _same_bits(bits: int) -> int:
    return 42


def _all_told(*args: Any, **kwargs: Any) -> Any:
    from agentforge.referee.baselines.task_report import TaskReport

    return TaskReport()


def _loose(original: Callable[..., Any]) -> Callable[..., Any]:
    """Bounds of a fixed absolute 1e-2, as public harnesses have them."""
    from dataclasses import replace

    from agentforge.referee.comparison.tolerance import Bound

    def held_against(*args: Any, **kwargs: Any) -> Any:
        return [
            replace(x, bound=Bound(1e9, 0.0, 1e-2, x.bound.reference_error)) if x.bound.relative else x
            for x in original(*args, **kwargs)
        ]

    return held_against


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


def _none_written(original: Callable[..., Any]) -> Callable[..., Any]:
    """Copies of all inputs, and none of them counts as a part of the answer."""
    return lambda self: {**original(self), "copy": True, "written": []}


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

    def disable(path: Path) -> list[str]:
        content = path.read_bytes()
        names: list[str] = original(path)
        if all(name.startswith("_") for name in names):
            path.write_bytes(content)
            return []
        return names

    return disable


_H = "agentforge.referee"
_BASELINES = f"{_H}.baselines.baselines"
_COMPARATOR = f"{_H}.comparison.comparator"
_CLIENT = f"{_H}.workers.client"
_SAMPLING = f"{_H}.comparison.output_sampling"
_BEHAVIOUR = f"{_H}.checks.behaviour"
_CORRECTNESS = f"{_H}.checks.correctness"
_TASK = f"{_H}.checks.task_strength"
_ABLATION = f"{_H}.candidates.kernel_ablation"
_NEVER_ENGAGED = (f"{_BEHAVIOUR}.engagement:Engagement.run", _passes)

DEFENCES: tuple[Mutant, ...] = (
    Mutant(
        "absolute-tolerance",
        "a fixed absolute 1e-2 in the place of the reference's own error",
        (
            (f"{_BASELINES}:Baselines.held_against", Wrapped(_loose)),
            (f"{_TASK}:examine_task", _all_told),
        ),
        ("softmax_quantised", "l2_noise"),
    ),
    Mutant(
        "norm-alone",
        "elements are not looked at one by one",
        ((f"{_COMPARATOR}:measure", Wrapped(_by_norm_alone)),),
        ("one_element_slightly",),
    ),
    Mutant(
        "nan-is-right",
        "what is not finite counts as equal",
        ((f"{_H}.comparison.tolerance:_errors", Wrapped(_nan_is_right)),),
        ("f12_nan/one_nan", "f12_nan/all_nan"),
    ),
    Mutant(
        "weak-tasks-unseen",
        "nobody asks whether the task can tell right from wrong",
        ((f"{_TASK}:examine_task", _all_told),),
        ("f01_constant_within_tolerance/always_zero",),
    ),
    Mutant(
        "form-unchecked",
        "shape and dtype are not compared",
        (
            (f"{_COMPARATOR}:OutputComparator._check_form", _nothing),
            (f"{_COMPARATOR}:OutputComparator.check_part", _nothing),
        ),
        ("int32_index", "float64_output"),
    ),
    Mutant(
        "any-tensor",
        "tensor subclasses are taken for tensors",
        (),
        ("lazy_subclass", "lazy_metaclass", "lying_subclass"),
        workers="any-tensor",
        covered_by="what is not in memory when the answer comes is read all the same, and is wrong",
    ),
    Mutant(
        "constant-weights",
        "weights keep their constant initial values",
        (),
        ("rmsnorm_own_ones", "layernorm_defaults"),
        workers="constant-weights",
    ),
    Mutant(
        "outputs-may-overlap",
        "outputs that overwrite one another are not looked for",
        (
            (f"{_BEHAVIOUR}.determinism:Determinism._keep_alive", _nothing),
            (f"{_SAMPLING}:OutputSampling.unchanged", _nothing),
            (f"{_H}.workers.memory.output_memory:OutputMemory.complaint", _no_doubt),
        ),
        ("f20_static_output/one_buffer", "fresh_view_of_one_buffer"),
    ),
    Mutant(
        "callers-never-write",
        "nothing is written to outputs, and their places are not compared",
        ((f"{_H}.workers.memory.output_memory:OutputMemory.complaint", _no_doubt),),
        ("expanded_heads", "f20_static_output/one_mask"),
    ),
    Mutant(
        "outputs-may-be-inputs",
        "outputs that share memory with inputs are not looked for",
        ((f"{_CLIENT}:WorkerClient.aliases", _nowhere),),
        ("private_copy_of_the_file",),
        covered_by="pages that the output of a timed call shares are looked for too",
    ),
    Mutant(
        "timed-outputs-may-be-inputs",
        "where the output of a timed call lies is not looked at",
        ((f"{_H}.timing.timer:Timer._look_where_it_lies", _nothing),),
        ("private_copy_of_the_file",),
        covered_by="an output in the file of its input changes with later content, which is seen",
    ),
    Mutant(
        "inputs-may-change",
        "inputs are not looked at after a call",
        ((f"{_BEHAVIOUR}.mutation:Mutation.run", _passes),),
        ("answer_in_place", "right_then_mutate"),
    ),
    Mutant(
        "updates-may-be-left-out",
        "what the reference writes to its inputs is not compared",
        ((f"{_BASELINES}:PreparedWorkload.body", Wrapped(_none_written)),),
        ("f04_mutate_inputs/update_left_out",),
    ),
    Mutant(
        "state-unchecked",
        "buffers are not compared after calls",
        ((f"{_BEHAVIOUR}.state:State.run", _passes),),
        ("statistics_left_out",),
    ),
    Mutant(
        "late-work",
        "processor time and processes after the answer are not looked at",
        (
            (f"{_BEHAVIOUR}.aftermath:Aftermath.run", _passes),
            (f"{_H}.workers.worker:Worker.stop_others", _none),
        ),
        ("spinning_threads", "subprocess_daemon"),
    ),
    Mutant(
        "no-attestation",
        "nobody asks which kernels ran, nor takes them out",
        ((f"{_BEHAVIOUR}.attestation:Attestation.run", _passes), _NEVER_ENGAGED),
        ("compiled_never_launched", "restate_it", "f45_triton/decoy_launched"),
    ),
    Mutant(
        "kernels-may-idle",
        "kernels are not taken out to see whether they do the work",
        (_NEVER_ENGAGED,),
        ("f35_decoy/underscore", "f35_decoy/indirect"),
    ),
    Mutant(
        "kernels-by-name",
        "kernels with unusual names are not taken out",
        ((f"{_ABLATION}:disable_exported", Wrapped(_plain_names)),),
        ("f35_decoy/underscore",),
        covered_by="a kernel that could not be taken out is a suspicion where own ones are asked for",
    ),
    Mutant(
        "timed-calls-unchecked",
        "outputs of timed calls are not compared",
        ((f"{_SAMPLING}:OutputSampling.compare", _nothing),),
        ("twenty_five", "f18_call_counter/hundred"),
    ),
    Mutant(
        "untimed-sample",
        "the clock does not wait for a sample of the answer",
        ((f"{_CLIENT}:WorkerClient._sample", _nothing),),
        ("fill_before_fetch", "cpp_last_row_late"),
        covered_by="processor time after the answer is seen, and more of every output is read",
    ),
    Mutant(
        "inputs-repeat",
        "every call sees the same content",
        (
            (f"{_H}.inputs.inputs:Inputs.prepare", Wrapped(_prepared_once)),
            (f"{_CORRECTNESS}.sharpened:Sharpened.run", _passes),
        ),
        ("f16_memo_by_address/data_ptr",),
    ),
    Mutant(
        "one-weight-for-all",
        "contents are mixed by one weight for all elements",
        ((f"{_H}.inputs.mixing:_SPREAD", 0.0),),
        ("span_of_the_base",),
    ),
    Mutant(
        "calls-known-by-content",
        "unusual contents are asked for in checks alone",
        ((f"{_H}.timing.unusual_calls:UnusualContents.draw", _no_contents),),
        ("careful_when_slow", "age_of_the_content", "note_for_the_successor"),
        full=True,
    ),
    Mutant(
        "seeds-are-known",
        "inputs and weights are drawn from seeds that can be guessed",
        (("secrets:randbits", _same_bits),),
        ("f21_precompute/guess_seed",),
    ),
    Mutant(
        "any-reply",
        "answers need not name what they answer",
        ((f"{_CLIENT}:WorkerClient._await", Wrapped(_any_reply)),),
        ("early_reply", "reply_ahead"),
        covered_by="an answer ahead of its question is one to other contents, and so wrong",
    ),
    Mutant(
        "no-sharper-contents",
        "contents that tell wrong answers which usual ones do not are not tried",
        ((f"{_CORRECTNESS}.sharpened:Sharpened.run", _passes),),
        ("sum_of_halves",),
    ),
    Mutant(
        "no-stability",
        "ordinary inputs alone",
        (
            (f"{_CORRECTNESS}.stability:Stability.run", _passes),
            (f"{_CORRECTNESS}.sharpened:Sharpened.run", _passes),
        ),
        ("softmax_no_max", "variance_by_squares", "sample_of_the_range"),
        full=True,
    ),
    Mutant(
        "no-edges",
        "no small integers, of which sums are exact",
        ((f"{_CORRECTNESS}.exact_integers:ExactIntegers.run", _passes),),
        ("last_of_a_million",),
        full=True,
    ),
    Mutant(
        "no-types",
        "the definition's other types are not tried",
        ((f"{_CORRECTNESS}.dtypes:DTypes.run", _passes),),
        ("f46_beyond_the_call/wrong_in_bfloat16",),
    ),
    Mutant(
        "no-gradients",
        "backward passes are not compared",
        ((f"{_CORRECTNESS}.gradients:Gradients.run", _passes),),
        ("f46_beyond_the_call/wrong_gradient",),
    ),
    Mutant(
        "no-variants",
        "the workload's shapes and strides alone",
        ((f"{_CORRECTNESS}.layouts:Layouts.run", _passes),),
        ("even_rows", "multiple_of_eight"),
        full=True,
    ),
    Mutant(
        "no-endurance",
        "no calls beyond those that timing needs",
        ((f"{_BEHAVIOUR}.soak:Soak.run", _passes),),
        ("f18_call_counter/four_hundred",),
        full=True,
    ),
    Mutant(
        "no-sanitizers",
        "no sanitized builds",
        ((f"{_BEHAVIOUR}.memory_safety:MemorySafety.run", _passes),),
        ("cpp_scratch_one_past", "cpp_racy_counter"),
        full=True,
    ),
    Mutant(
        "one-thread-count",
        "no other number of threads is tried",
        ((f"{_BEHAVIOUR}.thread_counts:ThreadCounts.run", _passes),),
        ("cpp_four_threads_assumed",),
        full=True,
    ),
    Mutant(
        "no-physics",
        "a time that nobody can reach is not doubted",
        ((f"{_H}.checks.speed_of_light:SpeedOfLight.run", _no_doubt),),
        ("f22_after_the_timer/fill_before_fetch",),
        covered_by="handing a call over takes longer than the fastest possible call of the corpus's size",
    ),
    Mutant(
        "no-filter",
        "no system-call filter",
        (),
        ("nested_namespace_burner", "mount_and_setuid"),
        workers="no-filter",
    ),
    Mutant(
        "shared-network",
        "the worker has the machine's network",
        (),
        ("f42_escape/network",),
        sandbox="namespaces",
        workers="shared-network",
    ),
    Mutant(
        "shared-files",
        "the worker sees the machine's files",
        (),
        ("write_outside",),
        sandbox="namespaces",
        workers="shared-files",
    ),
    Mutant(
        "limits-alone",
        "resource limits alone, no namespaces",
        (),
        ("write_outside", "f42_escape/network"),
        sandbox="rlimits",
    ),
)
"""Not here: limits on memory, processes and time (taking them away would take the machine along), and what
guards honest kernels (A/A' control, steal, fresh process groups)."""
