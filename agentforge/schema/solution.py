"""`Solution`: an immutable implementation of a `Definition`."""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePosixPath
from typing import Self

from pydantic import Field, field_validator, model_validator

from ._base import FrozenModel, NonEmptyString, content_hash


class SourceFile(FrozenModel):
    """One file of a solution."""

    path: NonEmptyString
    """Relative POSIX path without `..`."""
    content: str
    """Text of the file."""

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str) -> str:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path:
            raise ValueError(f"source path must be relative and stay inside the solution: {path!r}")
        return path


class BuildSpec(FrozenModel):
    """How a solution is built and entered."""

    language: NonEmptyString
    """Name of a `Language`: `cpp`, `python`, `triton`, `cuda`, ..."""
    entry_point: NonEmptyString = "model_new.py::ModelNew"
    """`file::class`, the class in KernelBench's convention."""
    flags: tuple[str, ...] = ()
    """Extra compiler flags, part of what affects behaviour."""
    dependencies: tuple[str, ...] = ()
    """What the build needs beyond the language, for example `torch-headers`."""

    @field_validator("entry_point")
    @classmethod
    def _file_and_class(cls, value: str) -> str:
        if value.count("::") != 1 or not all(value.split("::")):
            raise ValueError(f"entry point must read file.py::ClassName, not {value!r}")
        return value

    @property
    def entry_file(self) -> str:
        return self.entry_point.split("::")[0]

    @property
    def entry_class(self) -> str:
        return self.entry_point.split("::")[1]

    @property
    def needs_gpu(self) -> bool:
        """Whether the language runs on GPUs only."""
        return self.language in ("cuda", "cupy", "triton")


class Solution(FrozenModel):
    """An implementation: source files, language, entry point, author. Identified by `hash`."""

    name: NonEmptyString
    """Readable, not unique."""
    definition: NonEmptyString
    """Hash of the definition it solves."""
    author: NonEmptyString
    """`playbook`, `inductor`, `person`, the model's name, or `bundle` for a claim's that was judged here."""
    spec: BuildSpec
    """How it is built and entered."""
    sources: tuple[SourceFile, ...] = Field(min_length=1)
    """All files; the entry file is among them."""
    description: str = ""
    """Technique, for people."""
    parameters: dict[str, int | float | str | bool] = {}
    """Template parameters that produced the sources (they are in the sources already)."""

    @model_validator(mode="after")
    def _entry_is_there(self) -> Self:
        paths = [s.path for s in self.sources]
        if len(set(paths)) != len(paths):
            raise ValueError("duplicate source path")
        if self.entry_file not in paths:
            raise ValueError(f"entry file {self.entry_file!r} is not among the sources")
        return self

    @property
    def entry_file(self) -> str:
        return self.spec.entry_file

    @property
    def entry_class(self) -> str:
        return self.spec.entry_class

    @cached_property
    def hash(self) -> str:
        """Hash of all that affects behaviour; name, author and description do not."""
        return content_hash(
            {
                "definition": self.definition,
                "spec": self.spec.model_dump(mode="json"),
                "sources": {s.path: s.content for s in self.sources},
            }
        )

    def source(self, path: str) -> str:
        """Text of one file.

        Raises:
            KeyError: no such file.
        """
        for file in self.sources:
            if file.path == path:
                return file.content
        raise KeyError(path)
