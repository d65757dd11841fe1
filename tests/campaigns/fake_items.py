"""Items in the place of `agentforge.campaigns.item:run_item`: most end in unusual ways."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agentforge.schema import (
    BusyError,
    CampaignItem,
    MachineError,
    MemoryShortageError,
    MissingPackageError,
    OutageError,
    ProviderError,
    StoreError,
    UnreachableError,
    UsageError,
)

Report = Callable[[str], None]


def killed(payload: Mapping[str, Any], report: Report) -> None:
    report("about to fall")
    os.kill(os.getpid(), signal.SIGSEGV)


def asleep(payload: Mapping[str, Any], report: Report) -> None:
    if "ITEM_PIDS" in os.environ:
        Path(os.environ["ITEM_PIDS"]).write_text(f"{os.getpid()}\n")
    time.sleep(600)


def chatting(payload: Mapping[str, Any], report: Report) -> None:
    while True:
        report("chatting")
        time.sleep(0.1)


def quick(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    return {"run": "", "headline": "quick"}


def in_turn(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    """Times something on a GPU, at the moment at which an item of another campaign wants to."""
    from agentforge.config import load_settings
    from agentforge.referee.timing.device_lock import gpu_lock

    folder, campaign = Path(os.environ["ITEM_TURNS"]), payload["item"]["campaign"]
    (folder / f"{campaign}.ready").touch()
    while len(list(folder.glob("*.ready"))) < 2:
        time.sleep(0.01)
    with gpu_lock(load_settings(payload["overrides"]).cache, "GPU-1", "timing"):
        begun = time.monotonic()
        time.sleep(0.3)
        (folder / f"{campaign}.turn").write_text(f"{begun} {time.monotonic()}")
    return quick(payload, report)


def busy_at_first(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    if payload["item"]["tries"] == 1:
        raise BusyError("run r-1 is being worked on by process 1: wait for it, or end it first")
    return quick(payload, report)


def without_its_database_at_first(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    if payload["item"]["tries"] == 1:
        raise UnreachableError("database postgresql://host/a cannot be reached: start the server")
    return quick(payload, report)


def no_compiler(payload: Mapping[str, Any], report: Report) -> None:
    raise MachineError("there is no compiler: install g++")


def before_an_upgrade(payload: Mapping[str, Any], report: Report) -> None:
    raise StoreError("database a.db was written by a newer AgentForge (revision 9999): upgrade agentforge")


def of_a_run(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    from agentforge.config import load_settings
    from agentforge.store import Store

    with Store(load_settings(payload["overrides"]).url) as store:
        store.attach_run(CampaignItem.model_validate(payload["item"]), "run-1")
    return quick(payload, report)


def broken_needs_a_compiler(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    if payload["item"]["problem"] == "broken":
        raise MachineError("there is no compiler: install g++")
    return quick(payload, report)


def short_of_memory_at_first(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    if payload["item"]["problem"] == "broken" and payload["item"]["tries"] == 1:
        raise MemoryShortageError("it needs more memory than is free here")
    return quick(payload, report)


def broken_is_short_of_memory(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    if payload["item"]["problem"] == "broken":
        raise MemoryShortageError("it needs more memory than is free here")
    return quick(payload, report)


def broken_lacks_a_package(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    if payload["item"]["problem"] == "broken":
        raise MissingPackageError("broken imports einops, which is not installed: run pip install einops")
    return quick(payload, report)


def says_its_limit(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    return {"run": "", "headline": f"limit {payload['limit_s']:g} s"}


def says_if_it_is_offline(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    return {"run": "", "headline": f"offline {os.environ['HF_HUB_OFFLINE']}"}


def on_a_sick_machine(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    """All fail except those whose name says so."""
    if "good" in payload["item"]["problem"]:
        return quick(payload, report)
    raise UsageError("torch cannot be imported")


def without_its_key(payload: Mapping[str, Any], report: Report) -> None:
    Path(os.environ["ITEM_KEYS"]).unlink()
    raise UsageError("there is no key for Anthropic")


def broken_is_refused_its_key(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    if payload["item"]["problem"] == "broken":
        raise ProviderError("anthropic (401) refuses the key")
    return quick(payload, report)


def broken_meets_two_outages(payload: Mapping[str, Any], report: Report) -> dict[str, str]:
    if payload["item"]["problem"] == "broken" and payload["item"]["tries"] <= 2:
        raise OutageError("there is no route to anthropic")
    return quick(payload, report)


def in_an_outage(payload: Mapping[str, Any], report: Report) -> None:
    raise OutageError("there is no route to anthropic")


def full_disk(payload: Mapping[str, Any], report: Report) -> None:
    raise OSError(28, "No space left on device")


def on_a_known_machine(payload: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The real item, without measuring the machine's ceilings or compiling by torch.compile."""
    from agentforge.campaigns.item import run_item
    from tests.quick import leave_out

    leave_out()
    return run_item(payload, report)


def on_a_steady_clock(payload: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The same with verdicts that say twice as fast of any C++, and slower of anything else."""
    from agentforge.referee import Referee
    from tests.steady import SteadyReferee

    evaluate = Referee.evaluate

    def steady(self: Referee, *asked: Any, **options: Any) -> Any:
        real: Any = SimpleNamespace(evaluate=partial(evaluate, self))
        speed = SteadyReferee(real, lambda solution: 2.0 if solution.spec.language == "cpp" else 0.9)
        return speed.evaluate(*asked, **options)

    Referee.evaluate = steady  # type: ignore[method-assign]
    return on_a_known_machine(payload, report)
