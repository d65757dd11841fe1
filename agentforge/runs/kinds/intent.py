"""Runs that begin with words: a language model writes the reference and its inputs, the referee checks them.

The search starts once the referee finds no wrong answer that the task would accept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from agentforge.agents import agents_in, authors
from agentforge.config import Settings
from agentforge.devices import DeviceSpec
from agentforge.frontends import FrontendOptions, load_target
from agentforge.llm import CallFailed, CannotAfford, is_spec
from agentforge.problems.reference_solution import reference_solution
from agentforge.schema import (
    Definition,
    Intent,
    IntentWritten,
    ReasonCode,
    RunKind,
    RunStatus,
    Target,
    TargetError,
    UsageError,
    Workload,
)

from .._base import RunInput
from ..checks import check_language
from ..pipeline import hardware
from ..run_settings import for_device
from .kernel import KernelRunPipeline, whole

TRIES = 3
"""References that may be written before the run gives up."""


_UNCHANGED = """class ModelNew(Model):
    def forward(self, *args, **kwargs):
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        before = [tensor.clone() for tensor in tensors]
        result = super().forward(*args, **kwargs)
        for number, (tensor, was) in enumerate(zip(tensors, before)):
            if not ((tensor == was) | ((tensor != tensor) & (was != was))).all():
                raise RuntimeError(f"the reference changes its input {number}: use no operator in place")
        return result
"""
"""Appended to a reference. Inputs are counted from 0; NaN equals NaN."""


@dataclass(frozen=True)
class IntentStart:
    """A description of what to compute, with the dtypes and sizes that matter."""

    intent: str
    kind: ClassVar[RunKind] = RunKind.INTENT
    ranged: ClassVar[bool] = False

    def check(self, settings: Settings, device: DeviceSpec) -> None:
        """Refuse a run without an author, without words or without a compiler."""
        search = settings.search
        roles = (search.coder, search.planner, search.judge)
        named = [spec for role in roles for spec in agents_in(role)]
        if not any(is_spec(spec) or spec in authors.names() for spec in named):
            raise UsageError(
                "--intent needs a language model to write the reference: add --llm anthropic:MODEL, "
                "openai:MODEL or openai:MODEL@URL; or write ref.py yourself and give that"
            )
        if not self.intent.split():
            raise UsageError(
                '--intent is empty: say what to compute, e.g. "softmax over the last dimension, fp32"'
            )
        check_language(for_device(settings, device).search.language)

    def load(self, settings: Settings, device: DeviceSpec) -> RunInput:
        """A target without a reference, which the run writes first."""
        return RunInput(_unwritten(self.intent, device.kind), settings, (Intent(text=self.intent),))


@dataclass(frozen=True)
class IntentRunPipeline(KernelRunPipeline):
    """The reference first, then as a kernel's run without a kernel."""

    def run(self) -> None:
        """Write, check, profile, search."""
        intent = self.run_log.record(Intent)
        if intent is None or intent.written:
            super().run()
            return
        target = self._write(intent)
        self.run_log.set_target(target)
        self.run_log.keep(intent.model_copy(update={"written": True}))
        self.run_log.event(IntentWritten(reference=target.definition.reference, notes=target.notes))
        super(IntentRunPipeline, replace(self, target=target)).run()

    def _write(self, intent: Intent) -> Target:
        """A reference that runs and can tell right from wrong.

        Raises:
            TargetError: none was written; the next session asks anew, unless the budget is used up.
        """
        run_log, author = self.run_log, self.agents.author
        if author is None:
            raise UsageError(
                "this run begins with words: resume it with -c search.coder=SPEC, which writes the reference"
            )
        run_log.set_status(RunStatus.PROFILING, error="")
        machine = hardware(self.device, self.roofline())
        source = objection = ""
        session = str(intent.given_up + 1) if intent.given_up else ""
        given_up = intent.model_copy(update={"given_up": intent.given_up + 1})
        for _ in range(TRIES):
            self._tell(f"{author.name} writes the reference" + (f" again: {objection}" if objection else ""))
            try:
                source, _ = author.write(intent.text, machine, source, objection, attempt=session)
                target = self._load(source)
                objection = self._blind(target)
            except CannotAfford as error:
                raise TargetError(f"no reference was written: {error}, and resume the run") from error
            except CallFailed as error:
                run_log.keep(given_up)
                raise TargetError(
                    f"no reference was written ({error}): resume the run to ask again"
                ) from error
            except TargetError as error:
                objection = str(error)
            if not objection:
                return target
        run_log.keep(given_up)
        raise TargetError(
            f"{TRIES} references could not be used, the last one because {objection}: describe it more "
            f"exactly, correct {self._file} and give that, or resume the run to ask again"
        )

    @property
    def _file(self) -> Path:
        return self.folder / "reference.py"

    def _load(self, source: str) -> Target:
        self._file.write_text(source, encoding="utf-8")
        target = load_target(str(self._file), FrontendOptions(device=self.device.torch_device))
        return target.model_copy(update={"name": self.target.name, "origin": self.target.origin})

    def _blind(self, target: Target) -> str:
        """Wrong answers that the task would accept, as the referee finds them; empty if there are none."""
        from agentforge.referee import EvaluationRequest, Referee  # it needs torch, and the author does not

        self._tell("the referee checks that the task can tell right from wrong")
        settings = self.settings.referee.model_copy(update={"compile_baseline": False})
        definition = whole(target.definition)
        checked = reference_solution(definition, _UNCHANGED)
        with Referee(settings, device=self.device, cache=self.settings.cache) as referee:
            evaluation = referee.evaluate(EvaluationRequest(definition, target.workloads, checked))
        if not evaluation.passed:
            why = "; ".join(evaluation.reasons) or evaluation.status.value
            return f"the reference fails its own test: {why}"
        return "; ".join(evaluation.reasons_with(ReasonCode.WEAK_TASK))


def _unwritten(intent: str, device: str) -> Target:
    """What the run points at until the reference is there."""
    words = " ".join(intent.split())
    name = "_".join(re.findall(r"[a-z0-9]+", words.lower())[:4]) or "intent"
    return Target(
        name=name,
        origin=f"intent: {words}",
        definition=Definition(name=name, op_type="model", reference=f'"""{words!r}, not written yet."""'),
        workloads=(Workload(name="unwritten", source="reference"),),
        device=device,
    )
