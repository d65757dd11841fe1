"""Settings: AGENTFORGE_* variables, a TOML file, `-c key.path=value`.

Precedence, highest first: `-c` overrides, environment (`AGENTFORGE_REFEREE__PROCESSES=5`), `.env`,
`agentforge.toml` in the working folder, defaults.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from agentforge.schema import Budget, UsageError


def default_home() -> Path:
    """Folder for the database, caches and runs: `$AGENTFORGE_HOME`, else `~/.agentforge`."""
    return Path(os.environ.get("AGENTFORGE_HOME") or Path.home() / ".agentforge")


class RefereeSettings(BaseModel, extra="forbid"):
    """How the referee works. Times in seconds, memory in bytes."""

    sandbox: str = "auto"
    """`auto` takes the strongest that works here; or a name: `bubblewrap`, `namespaces`, `rlimits`."""
    build_timeout_s: float = Field(default=120.0, gt=0)
    call_timeout_s: float = Field(default=60.0, gt=0)
    """For one call of the candidate, and for its import and construction."""
    evaluation_timeout_s: float = Field(default=900.0, gt=0)
    memory_bytes: int | None = None
    """Address-space head-room of a candidate process beyond what it started with; None derives it
    from the workload and the machine."""
    random_seeds: int = Field(default=3, ge=1)
    """Fresh-input correctness calls before anything is timed."""
    task_seconds: float = Field(default=2.0, ge=0)
    """For trying mutants of a reference (an ignored weight, half precision) when a definition is new."""
    quick_blocks: int = Field(default=8, ge=2)
    """Interleaved A/B/A' blocks at level `quick`."""
    full_blocks: int = Field(default=24, ge=4)
    """Interleaved blocks in each process group at level `full`."""
    quick_seconds: float = Field(default=1.0, gt=0)
    """Timing stops early at this many seconds at level `quick`."""
    full_seconds: float = Field(default=4.0, gt=0)
    """Timing of each process group stops early at this many seconds at level `full`."""
    model_factor: float = Field(default=3.0, ge=1)
    """Timing of a whole model (`op_type` `model`) at level `full` may take so many times as long: its calls
    are longer and what is to be told apart is smaller."""
    server_gap_s: float = Field(default=0.0, ge=0, le=10)
    """Mean of the random pauses before the calls of a turn: how fast a model is that is asked now and then
    (`server` mode). 0 is `offline` mode, back to back."""
    processes: int = Field(default=3, ge=3)
    """Fresh process groups before anything is `verified`."""
    compile_baseline: bool = True
    """Measure against torch.compile too."""
    threads: int = Field(default_factory=lambda: len(os.sched_getaffinity(0)), ge=1)
    """Threads of every measured party."""


class SearchSettings(BaseModel, extra="forbid"):
    """How the loop searches."""

    policy: str = "best-first"
    planner: str = "playbook"
    coder: str = "playbook"
    judge: str = "playbook"
    language: str = "cpp"
    patience: int = Field(default=4, ge=1)
    """Attempts without a gain on a bottleneck before the search leaves it."""
    min_share: float = Field(default=0.01, ge=0, le=1)
    """Bottlenecks below this share of the target's time are left alone."""
    abandon_ratio: float = Field(default=0.6, gt=0, lt=1)
    """An attempt slower than this times its parent's speed is not built upon."""
    sol_fraction: float = Field(default=0.95, gt=0, le=1)
    """Stop on a bottleneck that reached this fraction of the speed of light."""
    children: int = Field(default=0, ge=0, le=64)
    """Attempts made at a time, written and compiled side by side and timed one after the other; 0 is three
    where a language model writes them, else one."""

    @property
    def width(self) -> int:
        """Attempts made at a time."""
        return self.children or (3 if ":" in self.coder else 1)


class LLMSettings(BaseModel, extra="forbid"):
    """How language models are asked. Keys are no settings: they come from the environment or `.env`."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """Reasoning effort; None is the model's own."""
    max_tokens: int = Field(default=16384, ge=256)
    """Most tokens of one answer, reasoning included."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Longest silence of an endpoint."""
    deadline_s: float = Field(default=900.0, gt=0)
    """Longest time of one call."""
    retries: int = Field(default=4, ge=0)
    """Of the vendor's SDK, for what can pass: rate limits, time-outs, 5xx."""
    concurrency: int = Field(default=4, ge=1)
    """Calls at once to one endpoint, fewer while it complains."""
    seed: int | None = None
    """Where the endpoint has seeds."""
    prices: Path | None = None
    """TOML file whose prices go before the built-in ones."""
    record: Path | None = None
    """Cassette that every exchange is written to."""


class Settings(BaseSettings):
    """All settings."""

    model_config = SettingsConfigDict(
        env_prefix="AGENTFORGE_",
        env_nested_delimiter="__",
        env_file=".env",
        toml_file="agentforge.toml",
        extra="ignore",
    )

    home: Path = Field(default_factory=default_home)
    """Folder for the database, caches and runs."""
    database_url: str | None = None
    """Any SQLAlchemy URL; None is SQLite under `home`."""
    budget: Budget = Budget(minutes=1.25)
    referee: RefereeSettings = RefereeSettings()
    search: SearchSettings = SearchSettings()
    llm: LLMSettings = LLMSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, env_settings, dotenv_settings, TomlConfigSettingsSource(settings_cls))

    @property
    def url(self) -> str:
        """SQLAlchemy URL of the database."""
        return self.database_url or f"sqlite:///{self.home / 'agentforge.db'}"

    @property
    def cache(self) -> Path:
        """Folder for built objects, rooflines and compiler caches; safe to delete."""
        return self.home / "cache"

    @property
    def runs(self) -> Path:
        """Folder of the runs' artifacts and checkpoints."""
        return self.home / "runs"


def _nested(overrides: Sequence[str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for override in overrides:
        path, separator, text = override.partition("=")
        if not separator or not all(path.split(".")):
            raise UsageError(f"-c takes key.path=value, for example -c referee.processes=5, not {override!r}")
        node = tree
        *parents, leaf = path.split(".")
        for key in parents:
            node = node.setdefault(key, {})
        node[leaf] = _scalar(text)
    return tree


def _scalar(text: str) -> Any:
    """A value as YAML reads it; what YAML takes for a mapping or cannot read stands for itself: `openai:`."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return text if isinstance(value, dict) else value


def load_settings(overrides: Sequence[str] = ()) -> Settings:
    """Read the settings.

    Args:
        overrides: `key.path=value` strings of the command line; values are read as YAML scalars.

    Raises:
        UsageError: a value does not fit; the message names the setting.
    """
    try:
        tree = _nested(overrides)
        unknown = tree.keys() - Settings.model_fields.keys()
        if unknown:
            raise UsageError(
                f"unknown setting {sorted(unknown)[0]!r}; "
                f"the settings are: {', '.join(Settings.model_fields)}"
            )
        return Settings(**tree)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"setting {where}: {first['msg']}") from error
