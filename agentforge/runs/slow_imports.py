"""Modules that take a second or more to import: LangGraph, torch, and what traces and compiles with torch."""

from __future__ import annotations

from importlib import import_module

_TORCH = ("agentforge.referee.workers.device_backend", "agentforge.runs.evaluators.early_referee")
_SEARCH = "agentforge.loop.graph"
_TRACER = "torch._dynamo"
"""The playbook's coder traces with it."""
_LATER = (
    "agentforge.agents.playbook.coder",
    "agentforge.codegen.inductor.child",
    "agentforge.frontends.probe",
    "agentforge.profiling.worker",
    "agentforge.stitch",
    "agentforge.stitch.graph.child",
)
"""What the later phases and the children of a run import."""


def import_torch() -> None:
    """Import torch and all that opens a referee; a referee that is opened in a thread imports no more."""
    for module in _TORCH:
        import_module(module)


def import_search(*, traces: bool) -> None:
    """Import what searches.

    Args:
        traces: also what the playbook's coder needs.
    """
    for module in (_SEARCH, _TRACER) if traces else (_SEARCH,):
        import_module(module)


def import_all() -> None:
    """Import what runs and their children need, in a process that forks runs.

    The only threads that this starts are those of OpenBLAS, which end at a fork.
    """
    import_torch()
    import_search(traces=True)
    for module in _LATER:
        import_module(module)
