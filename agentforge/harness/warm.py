"""Fill the compiler's cache for several definitions at once, before anything is timed.

A cold torch.compile of one reference takes 5 to 20 seconds of one core. The referee starts its compiled
baselines one after the other and would wait for each; here they are compiled side by side, in child
processes, into the cache folder that the baselines read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from agentforge.config import RefereeSettings
from agentforge.schema import AgentForgeError, Definition

from .child import run_child
from .process import baseline_cache, worker_environment

_TIMEOUT_S = 300.0


def warm_compiler_cache(definitions: Sequence[Definition], settings: RefereeSettings, cache: Path) -> None:
    """Compile references with torch.compile, as many at a time as there are threads.

    What cannot be compiled is left: its baseline will say why. A process that ends does not wait: its
    children end with it.

    Args:
        definitions: whose references.
        settings: of the referee that will measure them.
        cache: the referee's cache folder.
    """
    if not settings.compile_baseline or not definitions:
        return
    environment = worker_environment(settings.threads, cache, baseline_cache(cache))
    waiting = deque(
        {"definition": d.model_dump(mode="json"), "threads": settings.threads} for d in definitions
    )

    def work() -> None:
        while True:
            try:
                payload = waiting.popleft()
            except IndexError:
                return
            with suppress(AgentForgeError):
                run_child(f"{__name__}:compile_reference", payload, timeout_s=_TIMEOUT_S, env=environment)

    threads = [Thread(target=work, daemon=True) for _ in range(min(settings.threads, len(waiting)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def compile_reference(payload: dict[str, Any], report: Any) -> None:
    """In the child: construct the reference and call it compiled, once."""
    import torch

    from .convention import load_problem

    torch.set_num_threads(payload["threads"])
    torch.set_grad_enabled(False)
    problem = load_problem(Definition.model_validate(payload["definition"]))
    model = problem.build(0)
    args, kwargs = problem.inputs(0)
    torch.compile(model)(*args, **kwargs)
