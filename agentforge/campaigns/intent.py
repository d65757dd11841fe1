"""Runs that begin with words: a model writes the reference and its inputs, the referee checks the task.

What was written is shown, and nothing is made faster before the referee has found no wrong answer that the
task would accept. Then the run is one of a whole reference, as of a kernel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from agentforge.agents import check_agents
from agentforge.analysis import Report
from agentforge.config import Settings
from agentforge.devices import detect, measure_roofline
from agentforge.frontends import FrontendOptions, load_target
from agentforge.llm import CallFailed, CannotAfford, is_spec
from agentforge.loop import Journal, OnEvent
from agentforge.schema import (
    BuildSpec,
    Definition,
    Level,
    RunStatus,
    Solution,
    SourceFile,
    Target,
    TargetError,
    UsageError,
    Workload,
)
from agentforge.store import Store

from .kernel import KernelPhases, whole
from .optimize import check_language, check_out, create_run, for_device, go_on
from .phases import hardware

INTENT, WRITTEN = "intent.given", "intent.written"
TRIES = 3
"""References that may be written before the run gives up."""
BLIND = "the task cannot tell"
"""How the referee's sentence on a wrong answer that the task accepts begins."""


def optimize_intent(
    intent: str,
    settings: Settings,
    *,
    device: str = "auto",
    out: Path | None = None,
    on_event: OnEvent | None = None,
) -> Report:
    """Write down what is asked for in words, check it, and make it fast.

    Args:
        intent: what to compute, with dtypes and sizes where they matter.
        settings: one of the agents is a language model.
        device: kind of device, or `auto`.
        out: folder for the fastest solution and its reference.
        on_event: called with each event of the run.

    Raises:
        UsageError: no language model is named.
        TargetError: no reference came that can tell right from wrong.
        AgentForgeError: the message says what to do.
    """
    where = detect(device)
    settings = for_device(settings, where)
    search = settings.search
    if not any(
        is_spec(p.strip()) for s in (search.coder, search.planner, search.judge) for p in s.split(",")
    ):
        raise UsageError(
            "--intent needs a language model to write the reference: add --llm anthropic:MODEL, "
            "openai:MODEL or openai:MODEL@URL; or write ref.py yourself and give that"
        )
    check_agents(search, settings.llm)
    check_out(out)
    check_language(search.language)
    target = _unwritten(intent, where.kind)
    with Store(settings.url) as store:
        run = create_run(store, target, settings, where)
        store.append_event(run.id, INTENT, {"intent": intent})
        return go_on(store, run, target, settings, where, out, on_event)


def begins_with_words(journal: Journal) -> bool:
    """Whether a run is one of this kind."""
    return journal.first(INTENT) is not None


@dataclass(frozen=True)
class IntentPhases(KernelPhases):
    """The reference first, then as a kernel's run without a kernel."""

    def run(self) -> None:
        """Write, check, profile, search."""
        if self.journal.first(WRITTEN) is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            target = self._write()
            target_hash = self.journal.store.save_target(target)
            self.journal.run = self.journal.store.update_run(self.journal.run.id, target=target_hash)
            self.journal.event(WRITTEN, reference=target.definition.reference, notes=list(target.notes))
            super(IntentPhases, replace(self, target=target)).run()
        else:
            super().run()

    def _write(self) -> Target:
        """A reference that runs and can tell right from wrong.

        Raises:
            TargetError: none came.
        """
        journal, author = self.journal, self.agents.author
        told = journal.first(INTENT)
        if author is None or told is None:
            raise UsageError(
                "this run begins with words: resume it with --llm SPEC, which writes the reference"
            )
        journal.set_status(RunStatus.PROFILING, error="")
        machine = hardware(self.device, measure_roofline(self.device, self.settings.cache))
        source = objection = ""
        for _ in range(TRIES):
            self._tell(f"{author.name} writes the reference" + (f" again: {objection}" if objection else ""))
            try:
                source, _ = author.write(str(told.data["intent"]), machine, source, objection)
                target = self._load(source)
                objection = self._blind(target)
            except (CallFailed, CannotAfford) as error:
                raise TargetError(
                    f"no reference was written ({error}): resume the run to ask again"
                ) from error
            except TargetError as error:
                objection = str(error)
            if not objection:
                return target
        raise TargetError(
            f"{TRIES} references could not be used, the last one because {objection}: "
            f"say it more exactly, or mend {self._file} and give that"
        )

    @property
    def _file(self) -> Path:
        return self.folder / "reference.py"

    def _load(self, source: str) -> Target:
        self._file.write_text(source, encoding="utf-8")
        target = load_target(str(self._file), FrontendOptions(device=self.device.kind))
        return target.model_copy(update={"name": self.target.name, "origin": self.target.origin})

    def _blind(self, target: Target) -> str:
        """Wrong answers that the task would accept, as the referee finds them; empty where there are none."""
        from agentforge.harness import Referee  # it needs torch, and the author does not

        self._tell("the referee checks that the task can tell right from wrong")
        settings = self.settings.referee.model_copy(update={"compile_baseline": False})
        definition = whole(target.definition)
        with Referee(settings, device=self.device, cache=self.settings.cache) as referee:
            evaluation = referee.evaluate(definition, target.workloads, itself(definition), level=Level.QUICK)
        if not evaluation.passed:
            why = "; ".join(evaluation.reasons) or evaluation.status.value
            return f"the reference fails its own test: {why}"
        return "; ".join(reason for reason in evaluation.reasons if reason.startswith(BLIND))


def itself(definition: Definition) -> Solution:
    """The reference as a solution of itself."""
    source = f"{definition.reference}\n\nclass ModelNew(Model):\n    pass\n"
    return Solution(
        name="reference",
        definition=definition.hash,
        author="reference",
        spec=BuildSpec(language="python"),
        sources=(SourceFile(path="model_new.py", content=source),),
    )


def _unwritten(intent: str, device: str) -> Target:
    """What the run points at until the reference is there."""
    words = " ".join(intent.split())
    if not words:
        raise UsageError(
            '--intent is empty: say what to compute, e.g. "softmax over the last dimension, fp32"'
        )
    name = "_".join(re.findall(r"[a-z0-9]+", words.lower())[:4]) or "intent"
    return Target(
        name=name,
        origin=f"intent: {words}",
        definition=Definition(name=name, op_type="model", reference=f'"""{words!r}, not written yet."""'),
        workloads=(Workload(name="unwritten", source="reference"),),
        device=device,
    )
