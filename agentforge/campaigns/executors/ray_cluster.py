"""Workers on a Ray cluster, each an actor: Ray places them, and the queue in the database has their work.

An actor starts `agentforge campaign work` on its machine and waits for it. Only the campaign's name, the
database's URL and settings travel by Ray: whatever part of it dies, the queue is as with any other worker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from agentforge.schema import MachineError, StoreError, UsageError, pip_install

from .local import run_workers

_ENVIRONMENT = {"RAY_kill_child_processes_on_worker_exit": "false"}
"""A worker gives its item back when its actor ends; Ray would kill it first."""
WAIT_S = 30.0
"""Seconds without the end of an actor after which those without a place are named."""


@dataclass(frozen=True)
class Resources:
    """What each actor takes of its machine; Ray shows it no other GPUs."""

    cpus: float = 1.0
    gpus: float | None = None
    """None: one if the campaign measures on a GPU; or with `auto`, if the cluster has GPUs; else none."""

    def options(self) -> list[str]:
        """As options of the command line."""
        gpus = [] if self.gpus is None else ["--gpus", f"{self.gpus:g}"]
        return ["--cpus", f"{self.cpus:g}", *gpus]


def check_ray(resources: Resources) -> None:
    """Refuse to begin without Ray, or with resources that are none.

    Raises:
        MachineError: Ray is not installed.
        UsageError: a negative or zero number.
    """
    if find_spec("ray") is None:
        raise MachineError(f"--executor ray needs the package ray: run {pip_install('ray')}")
    if not resources.cpus > 0 or not (resources.gpus or 0.0) >= 0:
        raise UsageError("--cpus must be above 0, and --gpus at least 0")


def run_actors(
    campaign: str,
    count: int,
    overrides: Sequence[str],
    resources: Resources,
    *,
    device: str,
    url: str,
    tell: Callable[[str], None],
    finished: Callable[[], bool],
) -> list[int]:
    """Start actors and wait until all have ended; they are spread over the machines.

    Actors for which the cluster has no room begin when others have ended, unless no item is left then. An
    actor that does not answer is given up once the campaign is finished.

    Ray takes the cluster of `RAY_ADDRESS`, else one that `ray start` began on this machine, else it starts
    one here. It starts an actor again if its process or its machine dies. If its head stays away for a
    minute, Ray ends this process; the workers then give their items back.

    Args:
        device: the campaign's.
        url: of the database, which each machine must reach.
        finished: says whether no item of the campaign is left.

    Returns:
        The exit codes of the workers that ended; 1 for an actor that could not start.

    Raises:
        MachineError: there is no such cluster, or none of its machines has the resources.
        UsageError: the database is a file and the cluster has several machines.
    """
    import ray
    from ray.exceptions import RayError

    try:
        ray.init(logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        raise MachineError(
            f"the Ray cluster cannot be used ({_first_line(error)}): correct RAY_ADDRESS, or start it with "
            "`ray start --head`"
        ) from error
    try:
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if len(machines) > 1 and url.startswith("sqlite"):
            raise UsageError(
                f"the Ray cluster has {len(machines)} machines and {url} is a file on one of them: "
                "use PostgreSQL (-c database_url=postgresql+psycopg://user@host/name)"
            )
        cpus, gpus = resources.cpus, _gpus(resources, device, machines)
        room = sum(_room(found, cpus, gpus) for found in machines)
        if not room:
            raise MachineError(
                f"no machine of the Ray cluster has {cpus:g} CPUs and {gpus:g} GPUs: choose other --cpus and "
                "--gpus, or add a machine to the cluster"
            )
        if room < count:
            tell(f"the Ray cluster has room for {room} of {count} workers at a time; the others wait")
        actor = ray.remote(_Worker).options(
            num_cpus=cpus,
            num_gpus=gpus,
            scheduling_strategy="SPREAD",
            max_restarts=-1,
            max_task_retries=-1,
            runtime_env={"env_vars": _ENVIRONMENT},
        )
        actors = [actor.remote() for _ in range(count)]
        begun = {each.begin.remote(): number for number, each in enumerate(actors)}
        ends = {
            each.work.remote(campaign, list(overrides), url): number for number, each in enumerate(actors)
        }
        codes: list[int] = []
        named: set[int] = set()
        while ends:
            over, _ = ray.wait(list(ends), timeout=WAIT_S)
            _, waiting = ray.wait(list(begun), num_returns=count, timeout=0)
            placeless = {begun[one] for one in waiting} & set(ends.values())
            if not over:
                if _is_finished(finished, tell):
                    break
                if placeless - named:
                    tell(_said(placeless, count, cpus, gpus))
                named |= placeless
                continue
            (end,) = over
            ended = ends.pop(end)
            try:
                codes.append(ray.get(end))
            except RayError as error:
                tell(f"a worker on the Ray cluster ended: {_first_line(error)}")
                codes.append(1)
            ray.kill(actors[ended])  # those that wait get its CPUs and GPUs
            if codes[-1] == 0:  # no worker would find an item any more
                ends = {end: number for end, number in ends.items() if number not in placeless}
        return codes
    finally:
        ray.shutdown()


def _is_finished(finished: Callable[[], bool], tell: Callable[[str], None]) -> bool:
    """Whether no item is left; a database that is away does not say so."""
    try:
        return finished()
    except StoreError as error:
        tell(str(error))
        return False


def _said(placeless: Iterable[int], count: int, cpus: float, gpus: float) -> str:
    names = ", ".join(str(number + 1) for number in sorted(placeless))
    return (
        f"the Ray cluster has no place yet for these of the {count} workers: {names}; each needs "
        f"{cpus:g} CPUs and {gpus:g} GPUs of one machine"
    )


def _room(machine: dict[str, Any], cpus: float, gpus: float) -> int:
    """Actors for which a machine has room at a time."""
    wanted = {"CPU": cpus, "GPU": gpus}
    return min(int(machine.get(name, 0) / most + 1e-9) for name, most in wanted.items() if most)


class _Worker:
    """The actor."""

    def begin(self) -> None:
        """Returns as soon as the actor has a place."""

    def work(self, campaign: str, overrides: list[str], url: str) -> int:
        """The exit code of a worker on this machine."""
        os.environ["AGENTFORGE_DATABASE_URL"] = url
        os.environ.pop("OMP_NUM_THREADS", None)  # Ray sets it to --cpus; a measurement takes its own number
        return run_workers(campaign, 1, overrides)[0]


def _gpus(resources: Resources, device: str, machines: Sequence[dict[str, Any]]) -> float:
    if resources.gpus is not None:
        return resources.gpus
    return float(device == "cuda" or (device == "auto" and any(found.get("GPU") for found in machines)))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
