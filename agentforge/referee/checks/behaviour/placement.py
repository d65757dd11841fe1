"""Processors for the measured workers."""

from __future__ import annotations

from agentforge.referee.timing.cpu_affinity import ProcessorPerThread, ProcessorPerWorker

from .._base import BOTH_LEVELS, Check, CheckContext, When


class Placement(Check):
    """Pins the threads of the measured workers to processors, unless that makes one slower."""

    name = "placement"
    levels = BOTH_LEVELS
    when = When.BEFORE_TIMING
    catches = "nothing; threads are pinned to processors, so that timings are steady"

    def run(self, context: CheckContext) -> str:
        clients = [*context.baselines.clients.values(), context.candidate]
        if context.builder.backend.remote:
            context.placement = ProcessorPerWorker(clients)
        else:
            context.placement = ProcessorPerThread(clients, context.settings.threads)
        return context.placement.settle(context.baselines.eager, context.candidate)
