"""Modules that take a second or more to import: LangGraph, torch, and what traces and compiles with torch."""

from __future__ import annotations

from importlib import import_module

_SEARCH = ("agentforge.loop.graph", "agentforge.referee.workers.device_backend")
_TRACER = "torch._dynamo"
"""The playbook's coder traces with it."""
_LATER = (
    "agentforge.referee.referee",
    "agentforge.agents.playbook.coder",
    "agentforge.codegen.inductor.child",
    "agentforge.frontends.probe",
    "agentforge.profiling.worker",
    "agentforge.stitch",
    "agentforge.stitch.graph.child",
)
"""What the later phases and the children of a run import."""


def import_search(*, traces: bool) -> None:
    """Import torch and what searches.

    Args:
        traces: also what the playbook's coder needs.
    """
    for module in (*_SEARCH, _TRACER) if traces else _SEARCH:
        import_module(module)


def import_all() -> None:
    """Import what runs and their children need, in a process that forks runs.

    The only threads that this starts are those of OpenBLAS, which end at a fork.
    """
    import_search(traces=True)
    for module in _LATER:
        import_module(module)
