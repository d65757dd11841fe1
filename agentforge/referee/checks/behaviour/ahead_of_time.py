"""Kernels compiled for devices that this machine lacks."""

from __future__ import annotations

from agentforge.languages import AheadOfTimeLanguage, languages

from .._base import ALL_LEVELS, Check, CheckContext, When


class AheadOfTime(Check):
    """Compiles the kernels that the first call launched for the GPU targets of the settings."""

    name = "compile"
    levels = ALL_LEVELS
    when = When.EXAMINATION
    condition = "for languages that compile ahead of time"
    catches = "kernels that compile for no GPU target; records registers and other resources"

    def applies(self, context: CheckContext) -> bool:
        return isinstance(languages.create(context.solution.spec.language), AheadOfTimeLanguage)

    def run(self, context: CheckContext) -> str:
        launches = context.candidate.request({"op": "launches"}).get("launches")
        result = context.builder.compile_launched(context.solution, launches)
        if result is None:
            return ""
        findings = context.findings
        findings.resources = result.resources or findings.resources
        findings.diagnostics += result.diagnostics
        return "; ".join(f"{r.kernel} for {r.target}: {r.registers} registers" for r in result.resources)
