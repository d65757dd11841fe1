"""Nsight Compute: hardware counters of a solution's own kernels, its rules' advice and hot source lines."""

from .capability import Refusal, Refused, availability
from .observer import NsightObserver
from .profiler import KernelProfiler, Launch, Observation
from .report import KernelReport, read_report

__all__ = [
    "KernelProfiler",
    "KernelReport",
    "Launch",
    "NsightObserver",
    "Observation",
    "Refusal",
    "Refused",
    "availability",
    "read_report",
]
