"""The phases of each kind of run."""

from collections.abc import Mapping

from agentforge.schema import RunKind

from ..pipeline import RunPipeline
from .intent import IntentRunPipeline
from .kernel import KernelRunPipeline

PIPELINES: Mapping[RunKind, type[RunPipeline]] = {
    RunKind.MODEL: RunPipeline,
    RunKind.EXTERNAL: RunPipeline,
    RunKind.KERNEL: KernelRunPipeline,
    RunKind.SEQUENTIAL: KernelRunPipeline,
    RunKind.INTENT: IntentRunPipeline,
}
"""The phases of each kind of run."""
