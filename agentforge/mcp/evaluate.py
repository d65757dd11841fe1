"""`evaluate_solution`, `get_metrics`."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field, ValidationError

from agentforge.isolation.scratch import Scratch
from agentforge.knowledge import UNNAMED
from agentforge.languages import read_solution
from agentforge.loop import Proposal
from agentforge.schema import (
    Attempt,
    Evaluation,
    Plan,
    Solution,
    SourceFile,
    UsageError,
)

from ._server_state import DefinitionId, RunId, ServerState, progress_reporter

MOST_BYTES = 2 << 20
"""Most characters of a solution's files together."""
LOG = 2000
"""Most characters of a candidate's output."""

AttemptId = Annotated[str, Field(description="Identifier of an attempt from evaluate_solution: RUN/0003.")]


def register(server: MCPServer[Any], server_state: ServerState) -> None:
    """Add the tools."""
    _register_evaluate(server, server_state)
    _register_metrics(server, server_state)


def _register_evaluate(server: MCPServer[Any], server_state: ServerState) -> None:
    @server.tool()
    def evaluate_solution(
        run: RunId,
        definition: DefinitionId,
        files: Annotated[
            dict[str, str],
            Field(description="Relative path to content; model_new.py defines class ModelNew."),
        ],
        context: Context[Any, Any],
        strategy: Annotated[
            str,
            Field(
                description="The technique: an identifier of search_strategies, or a new slug. "
                "Without it the knowledge base keeps nothing of the attempt."
            ),
        ] = UNNAMED,
        expected_speedup: Annotated[
            float,
            Field(
                gt=0,
                allow_inf_nan=False,
                description="Expected speedup over the best baseline; stored with the result.",
            ),
        ] = 1.0,
        idea: Annotated[str, Field(description="What you did and why, in a sentence or two.")] = "",
        parent: Annotated[str, Field(description="Attempt that it was derived from, if any.")] = "",
    ) -> dict[str, Any]:
        """Have the referee judge a solution: compile it, check it on fresh inputs, time it against the
        baselines.

        A solution that looks faster than the incumbent is verified in full. Only `verified` results count
        as gains.
        """
        with server_state.working() as workbench:
            found, bottleneck = workbench.bottleneck(run, definition)
            author = _author(context)
            if parent and parent not in {
                a.id for a in workbench.store.attempts(found.id) if a.bottleneck == bottleneck.definition.hash
            }:
                raise UsageError(f"run {found.id} has no attempt {parent!r} at this bottleneck")
            solution = solution_of(files, bottleneck.definition.hash, author)
            plan = Plan(
                strategy=slug(strategy),
                diagnosis=idea[:2000],
                language=solution.spec.language,
                expected_speedup=expected_speedup,
                author=author,
            )
            proposal = Proposal(bottleneck.definition.hash, plan, solution, parent or None)
            attempt = workbench.evaluate(found.id, proposal, progress_reporter(context))
            if attempt.evaluation is None:
                raise UsageError(attempt.error or "the attempt was not evaluated")
            return verdict(attempt, workbench.store.get_evaluation(attempt.evaluation))


def _register_metrics(server: MCPServer[Any], server_state: ServerState) -> None:
    @server.tool()
    def get_metrics(attempt: AttemptId) -> dict[str, Any]:
        """All measurements of an attempt: stages, errors, speedups with intervals, counters."""
        with server_state.reading() as workbench:
            found = workbench.store.get_attempt(attempt)
            if found.evaluation is None:
                raise UsageError(f"attempt {attempt} has no evaluation: {found.error or found.status}")
            body = workbench.store.get_evaluation(found.evaluation).model_dump(mode="json")
            body["log"] = body["log"][-LOG:]
            return {
                "attempt": found.id,
                "plan": found.plan.model_dump(mode="json") if found.plan else None,
                "critique": found.critique.model_dump(mode="json") if found.critique else None,
                "evaluation": body,
            }


def solution_of(files: dict[str, str], definition: str, author: str) -> Solution:
    """Build a solution from a client's files.

    Raises:
        UsageError: a path leads outside, too much text, or no `ModelNew`.
    """
    if sum(len(content.encode()) for content in files.values()) > MOST_BYTES:
        raise UsageError(f"the files together have more than {MOST_BYTES >> 20} MiB")
    with closing(Scratch("mcp")) as scratch:
        folder = scratch.path / "solution"
        folder.mkdir()
        for path, content in files.items():
            try:
                file = SourceFile(path=path, content=content)
            except ValidationError as error:
                raise UsageError(str(error.errors()[0]["msg"])) from error
            place = folder / file.path
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(file.content, encoding="utf-8")
            except OSError as error:
                raise UsageError(f"{path!r} cannot be written as a file: {error.strerror}") from error
        try:
            return read_solution(folder, definition, author=author)
        except UsageError as error:
            raise UsageError(
                str(error).replace(f"{folder}/", "").replace(str(folder), "the solution")
            ) from error


def verdict(attempt: Attempt, evaluation: Evaluation) -> dict[str, Any]:
    """The summary for the client; `get_metrics` has the rest."""
    performance, correctness = evaluation.performance, evaluation.correctness
    return {
        "attempt": attempt.id,
        "status": evaluation.status.value,
        "evidence": evaluation.evidence.value,
        "level": evaluation.level.value,
        "reasons": list(evaluation.reasons),
        "errors": [
            f"{d.file}:{d.line}: {d.message}" for d in evaluation.diagnostics if d.severity == "error"
        ][:8],
        "worst": correctness.worst if correctness else "",
        "latency_s": performance.latency_s if performance else None,
        "speedup": {name: interval.model_dump() for name, interval in evaluation.speedup.items()},
        "sol_s": performance.sol_s if performance else None,
        "log": evaluation.log[-LOG:],
        "seconds": evaluation.seconds,
    }


def slug(text: str) -> str:
    """A strategy's identifier."""
    kept = "".join(c if c.isalnum() else "-" for c in text.lower())
    return "-".join(part for part in kept.split("-") if part)[:80] or UNNAMED


def _author(context: Context[Any, Any]) -> str:
    """Name of the client's program, if it says so."""
    client = getattr(context.session, "client_info", None) or getattr(
        getattr(context.session, "client_params", None), "client_info", None
    )
    return f"mcp:{client.name}"[:80] if client is not None and client.name else "mcp"
