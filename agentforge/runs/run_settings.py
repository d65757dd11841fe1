"""The settings of a run: adapted to its device, remembered, and restored on a resume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agentforge.config import Settings
from agentforge.devices import DeviceSpec, Fallback, devices
from agentforge.schema import Budget, Permission, RunSettings, UsageError, first_fault

S = TypeVar("S", bound=BaseModel)

_OPTIONS_OF = {"options": "policy", "sandbox_options": "sandbox"}
"""Settings with options of what another setting names."""


def for_device(settings: Settings, device: DeviceSpec) -> Settings:
    """Settings whose kernels run on a device: in its language, unless the user named a language."""
    language = devices.create(device.kind).language
    if language == "triton" and Fallback.NO_TRITON in device.fallbacks:
        language = "cupy" if Fallback.NO_CUDA in device.fallbacks else "cuda"
    if "language" in settings.search.model_fields_set or language == settings.search.language:
        return settings
    return with_search(settings, language=language)


def with_search(settings: Settings, **changes: Any) -> Settings:
    """Settings with other search settings."""
    return settings.model_copy(update={"search": settings.search.model_copy(update=changes)})


def with_referee(settings: Settings, **changes: Any) -> Settings:
    """Settings with other referee settings."""
    return settings.model_copy(update={"referee": settings.referee.model_copy(update=changes)})


def remembered(
    settings: Settings, device: DeviceSpec, out: Path | None, permission: Permission | None = None
) -> RunSettings:
    """What a run keeps of the settings that it begins with."""
    return RunSettings(
        search=settings.search.model_dump(mode="json"),
        referee=settings.referee.model_dump(mode="json"),
        llm=settings.llm.model_dump(mode="json"),
        device=device.kind,
        out=str(out.absolute()) if out else None,  # a resume may have another working folder
        permission=permission,
    )


def restored(kept: RunSettings | None, settings: Settings) -> Settings:
    """`settings`, completed by those that the run began with; a setting that is given now comes first.

    Raises:
        UsageError: one that the run began with is unknown here or cannot be used.
    """
    if kept is None:
        return settings
    return settings.model_copy(
        update={
            "search": _section("search", kept.search, settings.search),
            "referee": _section("referee", kept.referee, settings.referee),
            "llm": _section("llm", kept.llm, settings.llm),
        }
    )


def _section(name: str, kept: Mapping[str, Any], given: S) -> S:
    try:
        return type(given).model_validate(_completed(kept, given.model_dump(exclude_unset=True)))
    except ValidationError as error:
        field, message = first_fault(error)
        place = f"{name}.{field}".strip(".")
        raise UsageError(
            f"the run began with a setting that this version of AgentForge does not take, {place} "
            f"({message}): resume it with the version that began it, or begin a new run"
        ) from error


def _completed(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given settings over the kept ones, without options of a policy or sandbox that was exchanged."""
    others = {options for options, of in _OPTIONS_OF.items() if given.get(of, kept.get(of)) != kept.get(of)}
    return _over({name: value for name, value in kept.items() if name not in others}, given)


def _over(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Both; a mapping in both keeps its other parts."""
    inner = {
        name: _over(kept[name], value)
        for name, value in given.items()
        if isinstance(value, dict) and isinstance(kept.get(name), dict)
    }
    return {**kept, **given, **inner}


def limited(budget: Budget, limits: Mapping[str, float | int | None]) -> Budget:
    """A budget with other limits.

    Raises:
        UsageError: a limit is not a positive, finite number.
    """
    try:
        return Budget.model_validate({**budget.model_dump(), **limits})
    except ValidationError as error:
        name, message = first_fault(error)
        raise UsageError(f"limit {name}: {message}") from error


def named_limits(settings: Settings, names: Iterable[str]) -> dict[str, float | int | None]:
    """Limits that a caller of `resume` names among overrides of settings.

    Those of a file or a variable are for new runs: a resumed run keeps its own.

    Args:
        names: such as `budget.minutes`; other settings are left out.
    """
    named = set(names)
    return {name: limit for name, limit in settings.budget.model_dump().items() if f"budget.{name}" in named}
