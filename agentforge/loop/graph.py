"""The graph: select -> plan -> code -> evaluate -> judge -> record -> select ..."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agentforge.schema import AttemptStatus, StoreError

from .steps import State, Steps

UNBOUNDED = 1_000_000
"""Steps of the graph; the budget is what ends a search."""


def build_graph(steps: Steps, saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The loop over `steps`, with a checkpoint after each."""

    def unless(stopped: Callable[[State], str], onward: str) -> Callable[[State], str]:
        """Go back to `select` where the step gave up, end where the budget did, else go `onward`."""

        def route(state: State) -> str:
            return stopped(state) or (END if steps.out_of_budget(new_attempt=False) else onward)

        return route

    def over(state: State) -> str:
        return "" if state["attempt"] else END

    def failed(state: State) -> str:
        attempt = steps.journal.attempt(state["attempt"]) if state["attempt"] else None
        return "select" if attempt is None or attempt.status is AttemptStatus.FAILED else ""

    graph = StateGraph(State)
    for step in (steps.select, steps.plan, steps.code, steps.evaluate, steps.judge, steps.record):
        graph.add_node(step.__name__, step)
    graph.add_edge(START, "select")
    graph.add_conditional_edges("select", unless(over, "plan"), ["plan", END])
    graph.add_conditional_edges("plan", unless(failed, "code"), ["code", "select", END])
    graph.add_conditional_edges("code", unless(failed, "evaluate"), ["evaluate", "select", END])
    # once measured, an attempt is judged and recorded, budget or not
    graph.add_conditional_edges("evaluate", lambda state: failed(state) or "judge", ["judge", "select"])
    graph.add_edge("judge", "record")
    graph.add_edge("record", "select")
    return graph.compile(checkpointer=saver)


@contextmanager
def checkpoints(path: Path) -> Iterator[SqliteSaver]:
    """The checkpoint file of a run.

    All decisions follow from the store, so a damaged file is put aside and costs nothing but the place
    within one attempt.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        connection = _open(path)
    except sqlite3.DatabaseError:
        path.replace(path.with_suffix(".damaged"))
        connection = _open(path)
    try:
        yield SqliteSaver(connection)
    except sqlite3.OperationalError as error:
        raise StoreError(
            f"checkpoint file {path} cannot be written ({error}): "
            "free some space and resume; what was done is kept"
        ) from error
    finally:
        connection.close()


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        SqliteSaver(connection).setup()
        connection.execute("SELECT count(*) FROM checkpoints").fetchone()
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def run_graph(steps: Steps, path: Path) -> State:
    """Run to the end, from the last checkpoint where there is one; returns the last state."""
    config: RunnableConfig = {
        "configurable": {"thread_id": steps.journal.run.id},
        "recursion_limit": UNBOUNDED,
    }
    with checkpoints(path) as saver:
        graph = build_graph(steps, saver)
        interrupted = bool(graph.get_state(config).next)
        start: State = {"planless": [], "attempt": "", "reason": ""}
        return cast(State, graph.invoke(None if interrupted else start, config, durability="sync"))
