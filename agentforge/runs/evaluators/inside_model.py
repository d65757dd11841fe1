"""A model of one region: a full verdict on a kernel is one on the model with it, which stitching needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from agentforge.loop import RunLog
from agentforge.referee import AroundReferee, EvaluationRequest, Evaluator, OnStage
from agentforge.schema import JUDGED, Evaluation, Level, Profile, Target, TargetError

from .cached import CachedEvaluator

if TYPE_CHECKING:
    from agentforge.stitch.variants import Variant, VariantBuilder

_INSIDE = "inside the model, of which it is the only region"


def only_region(target: Target, profile: Profile) -> str:
    """Hash of the definition of the only region of a model; empty if there are several.

    For a range of shapes, stitching has more than one variant to judge all the same. A kernel of the whole
    reference has no model around it.
    """
    alone = not target.shapes and len(profile.call_sites) == 1
    found = profile.bottlenecks[0].definition.hash if alone and profile.bottlenecks else ""
    return "" if found == target.definition.hash else found


class InsideModel(AroundReferee):
    """Evaluates as `referee` does, but a full verdict on a kernel is one on the model with the kernel.

    The verdict on the model is stored, so that stitching finds it.

    Args:
        judge: evaluates the model.
        sol_s: speed-of-light seconds of one forward; None if they are not known.
    """

    def __init__(
        self,
        referee: Evaluator,
        judge: Evaluator,
        run_log: RunLog,
        target: Target,
        profile: Profile,
        *,
        sol_s: float | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.referee = referee
        self._judge = CachedEvaluator(judge, run_log, again=False)  # `AttemptReferee` asks once more
        self._run_log = run_log
        self._target = target
        self._profile = profile
        self._sol_s = sol_s
        self._progress = progress
        self._region = only_region(target, profile)
        self.rewritten: VariantBuilder | None = None
        """Has rewritten the model, once a kernel was judged in it."""
        self._quick: dict[str, Evaluation] = {}
        """The last quick evaluation of each solution."""

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """See `Evaluator`."""
        if request.level is Level.FULL and request.definition.hash == self._region:
            found = self._inside(request, progress)
            if found is not None:
                return found
        evaluation = self.referee.evaluate(request, progress=progress)
        if request.level is Level.QUICK:
            self._quick[request.solution.hash] = evaluation
        return evaluation

    def _inside(self, request: EvaluationRequest, progress: OnStage | None) -> Evaluation | None:
        """The verdict on the model as one on the kernel; None if the kernel has no place in the model."""
        from agentforge.stitch.proof import engagement

        variant = self._variant(request)
        if variant is None:
            return None
        asked = replace(
            request,
            definition=self._target.definition,
            workloads=self._target.workloads,
            solution=variant.solution,
            sol_s=self._sol_s,
        )
        if self._progress is not None:
            self._progress(f"judging {variant.label} in the model")
        evaluation = self._judge.evaluate(asked, progress=progress)
        solutions = dict.fromkeys(variant.kernels, request.solution)
        if evaluation.passed and engagement(variant, evaluation, solutions):
            return None
        return self._of_kernel(evaluation, request)

    def _variant(self, request: EvaluationRequest) -> Variant | None:
        from agentforge.stitch.variants import VariantBuilder, promoted

        kernels = promoted(self._profile, {request.definition.hash: request.solution})
        builder = self.rewritten or VariantBuilder(self._target, kernels, self._progress)
        self.rewritten = builder.with_solutions(kernels)
        try:
            return self.rewritten.with_kernels(list(kernels), "kernels")
        except TargetError:  # stitching says it at the end
            self.rewritten = None
            return None

    def _of_kernel(self, evaluation: Evaluation, request: EvaluationRequest) -> Evaluation:
        """What the build and the profiler say about a kernel is known from its quick evaluation."""
        notes = {**evaluation.environment.notes, JUDGED: _INSIDE}
        update: dict[str, object] = {
            "definition": request.definition.hash,
            "solution": request.solution.hash,
            "workloads": tuple(w.hash for w in request.workloads),
            "environment": evaluation.environment.model_copy(update={"notes": notes}),
        }
        quick = self._quick.get(request.solution.hash)
        asked = request.definition, request.workloads, request.solution, Level.QUICK
        if quick is None and (found := self._run_log.finished_evaluation(*asked)):
            quick = found[1]  # of an earlier session or run
        if quick is not None:
            kept = ("diagnostics", "metrics", "findings", "resources", "classification", "kernels")
            update |= {name: getattr(quick, name) for name in kept}
        return evaluation.model_copy(update=update)
