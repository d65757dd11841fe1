"""Settings: AGENTFORGE_* variables, a TOML file, `-c key.path=value`.

Precedence, highest first: `-c` overrides, environment (`AGENTFORGE_REFEREE__PROCESSES=5`), `.env`,
`agentforge.toml` in the working folder, defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from agentforge.limits import allowed_threads
from agentforge.resources import resource
from agentforge.schema import Budget, UsageError, first_fault


def default_home() -> Path:
    """Folder for the database, caches and runs: `$AGENTFORGE_HOME`, else `~/.agentforge`.

    Raises:
        UsageError: the user has no home folder, and the variable is not set.
    """
    return _absolute(Path(os.environ.get("AGENTFORGE_HOME") or "~/.agentforge"))


def _absolute(path: Path) -> Path:
    """The path with its `~` resolved, as nothing else does for a file of settings.

    A run keeps its settings, and may be resumed from another folder.

    Raises:
        UsageError: the user has no home folder.
    """
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(
            f"{path} is nowhere, because this user has no home folder: set AGENTFORGE_HOME"
        ) from error


def sqlite_url(file: Path) -> str:
    """SQLAlchemy URL of a SQLite file; characters that mean something in a URL are quoted."""
    from sqlalchemy import URL  # most commands open no database, and it takes long to import

    return URL.create("sqlite", database=str(file)).render_as_string(hide_password=False)


UserPath = Annotated[Path, AfterValidator(_absolute)]
"""A path in the user's words, made absolute."""


def _names(value: object) -> object:
    """`jsonl,mlflow` as a list; TOML and `-c` may give a list too."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]
"""A list of names, or one string with commas."""


BaselineNames = Annotated[
    tuple[Literal["compile", "freezing", "max-autotune", "max-autotune-freezing", "cuda-graph"], ...],
    NoDecode,
    BeforeValidator(_names),
]
"""Compiled baselines, or one string with commas."""


class RefereeSettings(BaseModel, extra="forbid", allow_inf_nan=False):
    """Settings of the referee. Times are in seconds, memory in bytes."""

    sandbox: str = "auto"
    """`auto` (the strongest that works on this machine), `namespaces` or `rlimits`."""
    sandbox_options: dict[str, Any] = {}
    """Options of the sandbox; the built-in ones have none."""
    language_options: dict[str, dict[str, Any]] = {}
    """Options by language; the built-in ones have none."""
    build_timeout_s: float = Field(default=120.0, gt=0)
    """Limit for compiling one candidate."""
    call_timeout_s: float = Field(default=60.0, gt=0)
    """Limit for one call of the candidate, and for its import and construction. A call of one that calls
    torch.compile may take as long as `compile_timeout_s`."""
    evaluation_timeout_s: float = Field(default=900.0, gt=0)
    """Limit for one evaluation, without the time in which the reference is prepared or compiled, or another
    process measures. What was measured until then counts, and is not verified."""
    memory_bytes: int | None = Field(default=None, gt=0)
    """Additional address space of a candidate process beyond its start; None derives it from the workload
    and the machine."""
    random_seeds: int = Field(default=3, ge=1)
    """Correctness checks on fresh inputs before any timing."""
    task_seconds: float = Field(default=2.0, ge=0)
    """Time for testing mutants of a new definition's reference (an ignored weight, half precision)."""
    quick_blocks: int = Field(default=8, ge=2)
    """Interleaved A/B/A' blocks at level `quick`."""
    full_blocks: int = Field(default=24, ge=4)
    """Interleaved blocks in each process group at level `full`."""
    quick_seconds: float = Field(default=1.0, gt=0)
    """Planned timing at level `quick`; it may end earlier."""
    full_seconds: float = Field(default=4.0, gt=0)
    """Planned timing of each process group at level `full`; ends earlier if its interval is narrow enough."""
    model_factor: float = Field(default=3.0, ge=1)
    """Factor on the timing limit of a whole model (`op_type` `model`) at level `full`: its calls are longer
    and the differences smaller."""
    server_gap_s: float = Field(default=0.0, ge=0, le=10)
    """Mean of random pauses before calls (`server` mode: a model with occasional requests). 0 is `offline`
    mode: calls back to back."""
    processes: int = Field(default=3, ge=3)
    """Fresh process groups that a `verified` result needs."""
    patience_s: float = Field(default=15.0, ge=0)
    """Most seconds that a verdict at level `full` spends on waiting for free processors and on measuring
    again because other programs disturb it. A quiet machine spends none. With 0, a search does not measure an
    attempt again either."""
    compile_baseline: bool = True
    """Also measure against torch.compile."""
    quick_compile: bool = True
    """Level `quick` measures against torch.compile too, and waits until it has compiled; in a run without a
    language model only once a solution of the region had a full verdict. A campaign's default is False: then
    only candidates that beat eager are measured, at level `full`, against all baselines."""
    baselines: BaselineNames = ()
    """Compiled baselines: `compile`, `freezing`, `max-autotune`, `max-autotune-freezing` on a CPU, `compile`,
    `max-autotune`, `cuda-graph` on a GPU. Empty: on a CPU the first two, on a GPU all,
    and for regions of a model all but `max-autotune`."""
    compile_timeout_s: float = Field(default=300.0, gt=0)
    """Limit for the first call of a compiled baseline; one that takes longer is left out, which is noted."""
    threads: int = Field(default_factory=allowed_threads, ge=1)
    """Threads of every measured process, of a profile and of the ceilings; on a GPU each process has one."""


class SearchSettings(BaseModel, extra="forbid", allow_inf_nan=False):
    """Settings of the search loop."""

    policy: str = "best-first"
    """Which attempt the next one builds on."""
    allocator: str = "gain-per-cost"
    """Which bottleneck gets the next attempt."""
    options: dict[str, Any] = {}
    """Options of the policy, for example `-c search.options.beam=4`."""
    planner: str = "playbook"
    """`playbook`, or a language model as `PROVIDER:MODEL`."""
    coder: str = "playbook"
    """`playbook`, `PROVIDER:MODEL`, or a bandit over models: `bandit(A,B)`."""
    judge: str = "playbook"
    """`playbook`, or a language model as `PROVIDER:MODEL`."""
    agent_options: dict[str, dict[str, Any]] = {}
    """Options by agent, for planners, coders and judges of plug-ins."""
    language: str = "cpp"
    """Of new kernels: `cpp`, `triton`, `cuda`, `cupy` or `python`. If it is not set: `triton` on a GPU, with
    `--reference` the kernel's own language, else `cpp`."""
    advice_tokens: int = Field(default=600, ge=0)
    """Most tokens of cards of the kinds avoid, symptom and hardware in a language model's prompt."""
    agents: Literal["one-shot", "dialogue"] = "dialogue"
    """`dialogue`: a language model sees what fails in its code, and may repair it before the code becomes an
    attempt. `one-shot`: its first readable answer is the attempt."""
    contrast_tokens: int = Field(default=4000, ge=0)
    """Most tokens of verified solutions of earlier runs in a coder's prompt; 0 shows none."""
    cost_weight: float = Field(default=0.2, ge=0, le=1)
    """What dollars weigh against gains where `bandit(A,B)` draws a model: 0 nothing, 1 all."""
    directives: int = Field(default=0, ge=0, le=64)
    """Most fragments of the coder's prompt that compete at a time; after every ten attempts a language model
    edits the best one. 0 uses none."""
    drafts: int = Field(default=1, ge=1, le=16)
    """Drafts that a language model writes for each plan, side by side. The fastest one by a brief measurement
    is the attempt. `one-shot` takes one."""
    tune: int = Field(default=0, ge=0, le=200)
    """Most points of template parameters, or of the `@tune` comments of a language model, that are measured
    for each attempt that passes. 0 tunes nothing; otherwise the package optuna is needed."""
    patience: int = Field(default=0, ge=0)
    """Attempts without a gain on a bottleneck before the search leaves it. 0 means eight if a language model
    writes them, else four."""
    min_share: float = Field(default=0.01, ge=0, le=1)
    """Bottlenecks below this share of the target's time are skipped."""
    abandon_ratio: float = Field(default=0.6, gt=0, lt=1)
    """An attempt below this fraction of its parent's speed is not developed further."""
    sol_fraction: float = Field(default=0.95, gt=0, le=1)
    """Stop on a bottleneck that reached this fraction of the speed of light."""
    prove_compile: bool = True
    """If no variant with kernels beats torch.compile, prove torch.compile itself as the artifact. False, a
    campaign's default, keeps the fastest variant that beats eager, else eager."""
    least_stitching_s: float = Field(default=600.0, ge=0)
    """Least seconds that integration and its proof may take: a proof of a model with long calls, or one that
    torch.compile compiles for long, takes minutes."""
    limit_s: float | None = Field(default=None, gt=0)
    """Wall seconds after which a session of the run ends: evaluations and integration end before, so that
    there is a result. A campaign derives it from `--limit-minutes`."""
    reuse_verdicts: bool = True
    """A verdict on the same task and program that another run got on this machine since it started, with the
    same device, tools and settings, is taken from the database. False judges all anew, and lets no other run
    take what this one judged."""
    children: int = Field(default=0, ge=0, le=64)
    """Concurrent attempts, written and compiled in parallel and timed one after the other. 0 means three if
    a language model writes them, else one."""

    @property
    def width(self) -> int:
        """Number of concurrent attempts."""
        return self.children or (3 if ":" in self.coder else 1)

    @property
    def policy_options(self) -> dict[str, Any]:
        """The policy's options. If only language models plan, best-first builds on attempts that passed.
        Starts made side by side do not know that one passed, and leave a restart."""
        models = all(":" in planner for planner in self.planner.split(","))
        return {
            **({"starts": 1, "restarts": self.width} if models and self.policy == "best-first" else {}),
            **self.options,
        }

    @property
    def most_without_gain(self) -> int:
        """Attempts without a gain before the search leaves a bottleneck."""
        return self.patience or (8 if ":" in self.coder else 4)


class LLMSettings(BaseModel, extra="forbid", allow_inf_nan=False):
    """Settings of calls to language models. API keys come from the environment or `.env` instead."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """Reasoning effort; None uses the model's default."""
    max_tokens: int = Field(default=16384, ge=256)
    """Most tokens of one answer, reasoning included."""
    role_max_tokens: dict[
        Annotated[str, Field(pattern="^(planner|coder|judge|author|editor)$")], Annotated[int, Field(ge=1)]
    ] = {}
    """Like `max_tokens`, by role (`planner`, `coder`, `judge`, `author`, `editor`). Those of a planner and a
    judge are 8192. An answer that is cut off there is asked for again with `max_tokens`."""
    tool_calls: int = Field(default=12, ge=0)
    """Most tool calls of a coder in one draft, if the endpoint supports tools; 0 offers none."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Longest silence of an endpoint, in seconds."""
    deadline_s: float = Field(default=900.0, gt=0)
    """Longest time of one call, in seconds."""
    retries: int = Field(default=4, ge=0)
    """Retries by the vendor's SDK after temporary errors: rate limits, timeouts, 5xx."""
    concurrency: int = Field(default=4, ge=1)
    """Concurrent calls to one endpoint; fewer while it limits the rate."""
    seed: int | None = None
    """Ignored by endpoints without seeds."""
    prices: UserPath | None = None
    """TOML file with prices that replace the built-in ones."""
    options: dict[str, dict[str, Any]] = {}
    """Options by provider; the built-in ones have none."""
    record: UserPath | None = None
    """Cassette file that records every exchange, the profile and the verdicts."""
    replay_verdicts: bool = False
    """With `replay:FILE`: take the search's verdicts from the cassette too, and measure only the result."""


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix="AGENTFORGE_",
        env_nested_delimiter="__",
        env_file=".env",
        env_ignore_empty=True,
        toml_file="agentforge.toml",
        extra="ignore",
    )

    home: UserPath = Field(default_factory=default_home)
    """Folder for the database, caches and runs."""
    database_url: str | None = None
    """Any SQLAlchemy URL; None is SQLite under `home`."""
    budget: Budget = Budget(minutes=1.25)
    referee: RefereeSettings = RefereeSettings()
    search: SearchSettings = SearchSettings()
    llm: LLMSettings = LLMSettings()
    frontend_options: dict[str, dict[str, Any]] = {}
    """Options by frontend; the built-in ones have none."""
    trackers: Names = ()
    """Trackers that receive each run's events: `jsonl`, or a plug-in's name."""
    tracker_options: dict[str, dict[str, Any]] = {}
    """Options by tracker, for example `-c tracker_options.jsonl.path=events.jsonl`."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        try:
            toml = TomlConfigSettingsSource(settings_cls)
        except (OSError, ValueError) as error:  # it is closed to this user, no TOML, or no UTF-8
            raise UsageError(f"agentforge.toml cannot be read ({error}): correct it") from error
        _check_names(toml.toml_data, " in agentforge.toml")
        return (init_settings, env_settings, dotenv_settings, toml)

    @property
    def url(self) -> str:
        """SQLAlchemy URL of the database."""
        return self.database_url or sqlite_url(self.home / "agentforge.db")

    @property
    def cache(self) -> Path:
        """Folder for built objects, rooflines and compiler caches; safe to delete."""
        return self.home / "cache"

    @property
    def runs(self) -> Path:
        """Folder of the runs' artifacts and checkpoints."""
        return self.home / "runs"

    @property
    def playbooks(self) -> tuple[Path, Path]:
        """Folders of the knowledge base's cards: those that ship, and the user's own."""
        return resource("knowledge_base", "playbook"), self.home / "playbook"


def check_threads(referee: RefereeSettings) -> None:
    """Refuse more threads than this process has processors: nothing measured so would mean anything.

    Raises:
        UsageError: too many threads.
    """
    processors = allowed_threads()
    if referee.threads > processors:
        raise UsageError(
            f"referee.threads is {referee.threads}, but this process may use {processors} processors: "
            f"set it to {processors} or less"
        )


def _check_names(values: Mapping[str, Any], where: str = "") -> None:
    unknown = sorted(values.keys() - Settings.model_fields.keys())
    if unknown:
        raise UsageError(
            f"unknown setting {unknown[0]!r}{where}; the settings are: {', '.join(Settings.model_fields)}"
        )


def _nested(overrides: Sequence[str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for override in overrides:
        path, separator, text = override.partition("=")
        if not separator or not all(path.split(".")):
            raise UsageError(f"-c takes key.path=value, for example -c referee.processes=5, not {override!r}")
        _put(tree, path, _scalar(text))
    return tree


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set a value in nested dicts; a mapping is copied, so that the caller's never changes."""
    node = tree
    *parents, leaf = path.split(".")
    for key in parents:
        node = node.setdefault(key, {})
        if not isinstance(node, dict):
            raise UsageError(f"setting {path} is a part of {key}, which is {node!r}: leave out one of them")
    node[leaf] = dict(value) if isinstance(value, Mapping) else value


def _scalar(text: str) -> Any:
    """A value parsed as YAML; a mapping, a date, invalid YAML (`openai:`) or unquoted text (`a #1`) stays."""
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):  # PyYAML raises the second for 2026-13-45
        return text
    unquoted = isinstance(value, str) and text.lstrip()[:1] not in ("'", '"')
    return text if unquoted or isinstance(value, (dict, date)) else value


def load_settings(overrides: Sequence[str] = (), changes: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings.

    Args:
        overrides: `key.path=value` strings of the command line; values are read as YAML scalars.
        changes: values by `key.path`, taken as they are; they win over `overrides`.

    Raises:
        UsageError: a value does not fit, or a file of settings cannot be read.
    """
    try:
        tree = _nested(overrides)
        for path, value in (changes or {}).items():
            _put(tree, path, value)
        _check_names(tree)
        return Settings(**tree)
    except ValidationError as error:
        where, message = first_fault(error)
        raise UsageError(f"setting {where}: {message}") from error
    except (SettingsError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"the variables AGENTFORGE_* or the file .env cannot be read: {error}") from error
