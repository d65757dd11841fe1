"""The graph: select -> plan -> code -> evaluate -> judge -> record -> select ..."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send

from agentforge.llm import interruptible
from agentforge.schema import StoreError

from ._base import PendingAttempt
from .steps import State, Steps

UNBOUNDED = 1_000_000
"""Steps of the graph; the budget is what ends a search."""


def build_graph(steps: Steps, saver: BaseCheckpointSaver[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The loop over `steps`, with a checkpoint after each. Attempts of a round run in parallel."""

    def to_plan(state: State) -> list[Send] | str:
        """Attempts of different bottlenecks side by side, those of one in turn."""
        if not state["round"]:
            return END
        groups = groupby(sorted(state["round"], key=_bottleneck), key=_bottleneck)
        return [Send("plan", {"round": list(children)}) for _, children in groups]

    def each(station: str) -> Callable[[State], list[Send]]:
        return lambda state: [Send(station, {"round": [child]}) for child in state["round"]]

    graph = StateGraph(State)
    for step in (steps.select, steps.plan, steps.code, steps.evaluate, steps.judge, steps.record):
        graph.add_node(step.__name__, step)
    graph.add_node("planned", lambda state: {})  # all are planned before any is written
    graph.add_edge(START, "select")
    graph.add_conditional_edges("select", to_plan, ["plan", END])
    graph.add_edge("plan", "planned")
    graph.add_conditional_edges("planned", each("code"), ["code"])
    graph.add_edge("code", "evaluate")
    graph.add_conditional_edges("evaluate", each("judge"), ["judge"])
    graph.add_edge("judge", "record")
    graph.add_edge("record", "select")
    return graph.compile(checkpointer=saver)


def _bottleneck(child: PendingAttempt) -> str:
    return child["bottleneck"]


@contextmanager
def checkpoints(path: Path) -> Iterator[SqliteSaver]:
    """The checkpoint file of a run; a damaged one is put aside, because decisions follow from the store.

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
        connection.execute("PRAGMA synchronous=OFF")  # the store is what survives a power cut
        SqliteSaver(connection).setup()
        connection.execute("SELECT count(*) FROM checkpoints").fetchone()
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def run_graph(steps: Steps, path: Path) -> State:
    """Run to the end, from the last checkpoint if there is one; returns the last state."""
    config: RunnableConfig = {
        "configurable": {"thread_id": steps.supervisor.run_log.run.id},
        "max_concurrency": steps.width,
        "recursion_limit": UNBOUNDED,
    }
    with checkpoints(path) as saver:
        graph = build_graph(steps, saver)
        interrupted = bool(graph.get_state(config).next)
        start = {"round": [], "planless": Overwrite([]), "reason": ""}
        with interruptible():
            return cast(State, graph.invoke(None if interrupted else start, config, durability="sync"))
