"""`profile_model`, `list_bottlenecks`, `get_definition`."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

from agentforge.schema import Bottleneck, Profile, Run

from ._server_state import DefinitionId, RunId, ServerState, progress_reporter


def register(server: MCPServer[Any], server_state: ServerState) -> None:
    """Add the tools."""

    @server.tool()
    def profile_model(
        target: Annotated[
            str,
            Field(description="file.py in KernelBench's convention, file.py:ClassName, or hf:CONFIG.json."),
        ],
        context: Context[Any, Any],
        input_shapes: Annotated[
            list[str], Field(description="For file.py:ClassName: sizes of inputs, 1,512 or mask=1,512.")
        ] = [],  # noqa: B006 - read only
        input_dtypes: Annotated[list[str], Field(description="Their dtypes, the last one repeated.")] = [],  # noqa: B006
        inputs: Annotated[
            list[str],
            Field(description="For hf:CONFIG.json too: inputs by name, NAME=SIZES or mask=1,512:int64."),
        ] = [],  # noqa: B006
        dtype: Annotated[str, Field(description="Of the weights and floating inputs.")] = "float32",
        init_args: Annotated[str, Field(description="Constructor arguments as JSON.")] = "",
    ) -> dict[str, Any]:
        """Run a PyTorch model on this machine, find where its time goes, and begin a run.

        Takes some ten seconds. Bottlenecks are ranked by the end-to-end time that could be gained.
        """
        from agentforge.frontends import FrontendOptions

        with server_state.working() as workbench:
            options = FrontendOptions(
                input_shapes=tuple(input_shapes),
                input_dtypes=tuple(input_dtypes),
                inputs=tuple(inputs),
                init_args=init_args,
                dtype=dtype,
                device=workbench.device.torch_device,
            )
            run = workbench.profile(target, options, progress_reporter(context))
            return summary(*workbench.profile_of(run.id))

    @server.tool()
    def list_bottlenecks(run: RunId) -> dict[str, Any]:
        """The bottlenecks of a run, those with most to gain first, each with its best result so far.

        Times and shares are those that remain with the verified solutions in place.
        """
        with server_state.reading() as workbench:
            found, profile = workbench.profile_of(run)
            reached = _reached(server_state, found)
            verified = {
                name: entry.get("verified_speedup", {}).get("eager") for name, entry in reached.items()
            }
            speedups = {name: interval["point"] for name, interval in verified.items() if interval}
            return summary(found, profile.with_solutions(speedups), reached)

    @server.tool()
    def get_definition(run: RunId, definition: DefinitionId) -> dict[str, Any]:
        """A bottleneck's contract: PyTorch reference, captured inputs, other dtypes, tolerance, rules."""
        with server_state.reading() as workbench:
            _, bottleneck = workbench.bottleneck(run, definition)
            return contract(bottleneck, workbench.settings.search.language)


def summary(run: Run, profile: Profile, reached: dict[str, Any] | None = None) -> dict[str, Any]:
    """A run's profile in numbers."""
    return {
        "run": run.id,
        "device": profile.device,
        "architecture": profile.architecture,
        "forward_s": profile.total_s,
        "bottlenecks": [
            {
                "definition": b.definition.hash,
                "name": b.definition.name,
                "op_type": b.definition.op_type,
                "call_sites": len(b.call_sites),
                "share": b.share,
                "time_s": b.time_s,
                "sol_s": b.sol_s,
                "bound": b.bound,
                "end_to_end_gain_s": b.gain_s,
                "worth_trying": b.optimizable,
                **((reached or {}).get(b.definition.hash, {})),
            }
            for b in profile.bottlenecks
        ],
        "notes": list(profile.notes),
    }


def contract(bottleneck: Bottleneck, language: str) -> dict[str, Any]:
    """Rules for a solution in a language."""
    definition = bottleneck.definition
    return {
        "definition": definition.hash,
        "name": definition.name,
        "op_type": definition.op_type,
        "reference": definition.reference,
        "workloads": [w.model_dump(mode="json", exclude_defaults=True) for w in bottleneck.workloads],
        "dtypes": list(definition.dtypes),
        "tolerance": definition.tolerance.model_dump(mode="json"),
        "work_policy": definition.policy,
        "operators": sorted({name for site in bottleneck.call_sites for name in site.operators}),
        "how_to_answer": f"{RULES}\n\n{_how_to_write(language)}".strip(),
    }


def _how_to_write(language: str) -> str:
    """How solutions in a language look, as a coder's prompt says it; empty if none does."""
    from agentforge.agents.llm.prompts import exists, render

    if language == "cpp":
        return CPP  # the prompt offers a header that only answers of a coder get
    template = f"coder/languages/{language}.md.j2"
    return render(template) if exists(template) else ""


RULES = """\
Send files to evaluate_solution: model_new.py with `class ModelNew(torch.nn.Module)`, which takes the init
arguments, state_dict and inputs of the reference's Model, and whatever it loads.
The referee draws fresh inputs, compares every output (those of timed calls too) within the tolerance, and
looks for results kept between calls, inputs changed in place, calls into the reference and reads of the
clock: these are cheating and end the attempt. The whole work is to be done at every call.
With inputs of each type in `dtypes` the solution must be right too, though not fast."""

CPP = """\
For C++: kernel.cpp with `extern "C"` functions over plain pointers and sizes, and in model_new.py
`from agentforge_cpp import load; lib = load(__file__, "kernel.cpp")`, then
`lib.function(tensor, ..., int)`."""


def _reached(server_state: ServerState, run: Run) -> dict[str, Any]:
    """Attempts and the fastest verified speedup, by bottleneck."""
    store = server_state.workbench.store
    found: dict[str, Any] = {}
    for attempt in store.attempts(run.id):
        entry = found.setdefault(attempt.bottleneck, {"attempts": 0})
        entry["attempts"] += 1
    for promotion in store.promotions(run.id):
        speedup = store.get_evaluation(promotion.evaluation).speedup
        found[promotion.bottleneck]["verified_speedup"] = {
            name: interval.model_dump() for name, interval in speedup.items()
        }
    return found
