"""`agentforge.optimize` and `agentforge.resume`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentforge.schema import expanded

from .arguments import naming_arguments
from .metric import Metric, permission_for
from .progress import Progress, view_for
from .result import Result
from .targets import as_target, check_model, live_module, load_settings, names_in, where_of

if TYPE_CHECKING:
    import torch

    from agentforge.analysis import Report
    from agentforge.config import Settings
    from agentforge.loop import OnEvent
    from agentforge.schema import Event, Target


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a run, which can go on.

    Attributes:
        run: identifier for `agentforge.resume(run)`.
    """

    def __init__(self, run: str) -> None:
        super().__init__(f"run {run} was interrupted; go on with agentforge.resume({run!r})")
        self.run = run


@naming_arguments
def optimize(
    model: torch.nn.Module | str | os.PathLike[str],
    example_inputs: Any = None,
    *,
    minutes: float | None = None,
    attempts: int | None = None,
    dollars: float | None = None,
    tokens: int | None = None,
    device: str | torch.device = "auto",
    dtype: str | torch.dtype = "",
    llm: str | None = None,
    planner: str | None = None,
    coder: str | None = None,
    judge: str | None = None,
    out: str | os.PathLike[str] | None = None,
    init_args: Sequence[Any] | Mapping[str, Any] | None = None,
    generate: str = "",
    shapes: str = "",
    allow: str = "",
    metric: Metric | str | None = None,
    bound: float | str | None = None,
    settings: Settings | Mapping[str, Any] | Sequence[str] | None = None,
    on_event: OnEvent | None = None,
    progress: Progress = "auto",
) -> Result:
    """Make a model faster for calls like an example: profile it, search for kernels, prove what won.

    Other processes do the work. `model` and `example_inputs` are not changed, and may change meanwhile.
    The model is optimized for inference, in the training modes, dtype and device that it has.

    Args:
        model: a module, `"model.py"` in KernelBench's convention, `"model.py:Net"`, or `"hf:config.json"`.
        example_inputs: arguments of one call: a tuple (positional), a dict (by keyword) or one tensor.
            A module and `"model.py:Net"` need them; those of `"hf:config.json"`, by name, replace its own.
            Kernels are verified on random inputs with the same shapes, dtypes, strides and ranges of values.
            Those of a path have the same shapes and dtypes only.
        minutes: wall time of the search; 1.25 if neither the call nor the settings have a limit. Proving the
            result takes one or two minutes more.
        attempts: at most this many kernels are tried.
        dollars: at most this much is spent on language models.
        tokens: at most this many tokens are exchanged with language models, in and out.
        device: `cpu` or `cuda`; `auto` is where the module is, or the best one for a path.
        dtype: of the weights of `"model.py:Net"`, or of weights and floating inputs of `"hf:config.json"`, if
            it is not float32.
        llm: who plans, writes and judges kernels: `playbook` (built in, the default), `anthropic:MODEL`,
            `openai:MODEL`, or `openai:MODEL@URL`.
        planner: who plans, if not `llm`.
        coder: who writes kernels, if not `llm`; `bandit(openai:MODEL,anthropic:MODEL)` draws a model for each
            attempt.
        judge: who judges attempts, if not `llm`.
        out: folder for the artifact; else it goes below the run's own folder.
        init_args: constructor arguments for `"model.py:Net"`: a list or a dict.
        generate: `"prompt=128,new=64"`: make a generation by a causal language model of transformers faster,
            a prefill of 128 tokens and 63 decode steps with a static KV cache. There are no example inputs.
        shapes: `"batch=1..32,seq=128..2048"`: make calls of all these shapes faster. `batch` and `seq` are
            dimensions 0 and 1 of the inputs, `x.2` is dimension 2 of the input `x`, and `length:q.1+mask.0`
            are two dimensions that always have one size.
        allow: `"bf16"` or `"int8"`: products with weights may use this lower precision, if `metric` stays
            within `bound`. Without it, the model keeps its precision.
        metric: with `allow`, a function that takes the model and returns a number, or `"file.py:function"`.
            It runs in another process, which gets it by cloudpickle.
        bound: with `allow`, how far the metric may change: `"0.5%"` of the original model's, or an absolute
            difference such as `0.01`.
        settings: overrides such as `{"referee.processes": 5}`, as with `-c` on the command line.
        on_event: called with each event of the run.
        progress: `"auto"`: a live table in a terminal or a notebook, plain lines elsewhere. True: plain
            lines. False: nothing.

    Returns:
        What the run reached; `result.model` is the faster model.

    Raises:
        AgentForgeError: the model, an input or a setting cannot be used; the message says what to do.
        RunInterrupted: Ctrl-C; a `KeyboardInterrupt` that carries the run's identifier for `resume`.

    Example:
        >>> result = agentforge.optimize(model, (x,), minutes=5)
        >>> result.speedup["torch.compile"]
        1.24x [1.18, 1.31], verified
        >>> fast = result.model
    """
    chosen = load_settings(
        settings,
        budget__minutes=minutes,
        budget__attempts=attempts,
        budget__dollars=dollars,
        budget__tokens=tokens,
        search__planner=planner or llm,
        search__coder=coder or llm,
        search__judge=judge or llm,
    )
    from agentforge.devices import detect
    from agentforge.runs import TargetStart, start_run

    permission = permission_for(allow, metric, bound, chosen)
    spec = detect(where_of(model, device))
    folder = expanded(out) if out is not None else None

    def load() -> Target:
        return as_target(model, example_inputs, spec.torch_device, chosen, init_args, generate, shapes, dtype)

    def check() -> None:
        check_model(model, example_inputs, chosen, init_args, generate, shapes, dtype)

    start = TargetStart(load, check, ranged=bool(shapes))

    def run(send: OnEvent) -> Report:
        return start_run(start, chosen, device=spec.kind, out=folder, permission=permission, on_event=send)

    return _watched(run, chosen, on_event, progress)


@naming_arguments
def resume(
    run: str | Result,
    *,
    model: torch.nn.Module | None = None,
    minutes: float | None = None,
    attempts: int | None = None,
    dollars: float | None = None,
    tokens: int | None = None,
    settings: Settings | Mapping[str, Any] | Sequence[str] | None = None,
    on_event: OnEvent | None = None,
    progress: Progress = "auto",
) -> Result:
    """Go on with a run where it stopped. A finished run gives its result, or searches on under new limits.

    If the proof of a finished run was cut short, that is repeated first, if it can be repeated here.

    Args:
        run: identifier of the run, the beginning of it, or a result.
        model: the module that `result.model` shares its weights with, if it is not the one that this process
            gave to `optimize`. Without either, the model is rebuilt with the weights that it had then.
        minutes: new limit on wall time, over all sessions.
        attempts: new limit on attempts.
        dollars: new limit on what language models cost.
        tokens: new limit on tokens of language models, in and out.
        settings: overrides, as for `optimize`; others are those that the run began with. The budget of a
            whole `Settings` is not used: name the limits.
        on_event: called with each event.
        progress: as for `optimize`.

    Raises:
        UsageError: no such run, or another process works on it.
        RunInterrupted: Ctrl-C.
    """
    from agentforge.runs import resume as go_on
    from agentforge.runs.run_settings import named_limits

    chosen = load_settings(settings)
    limits = named_limits(chosen, names_in(settings))
    given = {"minutes": minutes, "attempts": attempts, "dollars": dollars, "tokens": tokens}
    limits.update({name: value for name, value in given.items() if value is not None})
    identifier = run.run if isinstance(run, Result) else run

    def again(send: OnEvent) -> Report:
        return go_on(identifier, chosen, limits=limits, on_event=send)

    return _watched(again, chosen, on_event, progress, model)


def _watched(
    run: Callable[[OnEvent], Report],
    settings: Settings,
    on_event: OnEvent | None,
    progress: Progress,
    model: torch.nn.Module | None = None,
) -> Result:
    """Run with a view; an interrupt names the run."""
    view = view_for(progress)

    def send(event: Event) -> None:
        view(event)
        if on_event is not None:
            on_event(event)

    try:
        with view:
            report = run(send)
    except KeyboardInterrupt as error:
        if view.run_state.run:
            raise RunInterrupted(view.run_state.run) from error
        raise
    from agentforge.store import Store

    with Store(settings.url) as store:
        target = store.get_target(report.run.target)
    return Result(report, target, model if model is not None else live_module(target.definition.hash))
