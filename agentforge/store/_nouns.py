"""Nouns kept by their content hash: targets, definitions, solutions; and a run's profile."""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy import select

from agentforge.schema import (
    Definition,
    FrozenModel,
    Profile,
    Run,
    Solution,
    Target,
    UsageError,
    content_hash,
)

from ._engine import Database, add_once
from .tables import DefinitionRow, ProfileRow, SolutionRow, TargetRow

Noun = TypeVar("Noun", bound=FrozenModel)


class Nouns:
    """Targets, definitions, solutions and profiles."""

    _db: Database

    def save_target(self, target: Target) -> str:
        """Keep a target beside others of its definition, with other workloads or on another device.

        Returns:
            Its key: the hash of its definition, or its own if another target has that.
        """
        body = target.model_dump_json()
        with self._db.write() as session:
            for key in (target.definition.hash, content_hash(body)):
                add_once(session, TargetRow(hash=key, name=target.name[:255], body=body))
                if session.scalar(select(TargetRow.body).where(TargetRow.hash == key)) == body:
                    break
        return key

    def get_target(self, key: str) -> Target:
        """The target that `save_target` gave this key.

        Raises:
            UsageError: no such target.
        """
        return self._noun(TargetRow, key, Target, "target")

    def definition_of(self, run: Run) -> str:
        """Hash of the definition of a run's target. A run may be here without its target."""
        try:
            return self.get_target(run.target).definition.hash
        except UsageError:
            return run.target

    def save_definition(self, definition: Definition) -> str:
        """Keep a definition; returns its hash. Idempotent."""
        with self._db.write() as session:
            add_once(
                session,
                DefinitionRow(
                    hash=definition.hash, op_type=definition.op_type, body=definition.model_dump_json()
                ),
            )
        return definition.hash

    def get_definition(self, definition_hash: str) -> Definition:
        """The definition of this hash.

        Raises:
            UsageError: no such definition.
        """
        return self._noun(DefinitionRow, definition_hash, Definition, "definition")

    def save_solution(self, solution: Solution) -> str:
        """Keep a solution; returns its hash. Idempotent: the first author and name stay."""
        with self._db.write() as session:
            add_once(
                session,
                SolutionRow(
                    hash=solution.hash,
                    definition=solution.definition,
                    author=solution.author[:255],
                    body=solution.model_dump_json(),
                ),
            )
        return solution.hash

    def get_solution(self, solution_hash: str) -> Solution:
        """The solution of this hash.

        Raises:
            UsageError: no such solution.
        """
        return self._noun(SolutionRow, solution_hash, Solution, "solution")

    def save_profile(self, run_id: str, profile: Profile) -> None:
        """Keep the run's profile in the place of an earlier one."""
        with self._db.write() as session:
            session.merge(ProfileRow(run=run_id, body=profile.model_dump_json()))

    def get_profile(self, run_id: str) -> Profile | None:
        """The run's profile; None before it was made."""
        with self._db.read() as session:
            row = session.get(ProfileRow, run_id)
            return None if row is None else Profile.model_validate_json(row.body)

    def _noun(
        self,
        table: type[TargetRow] | type[DefinitionRow] | type[SolutionRow],
        key: str,
        noun: type[Noun],
        word: str,
    ) -> Noun:
        with self._db.read() as session:
            body = session.scalar(select(table.body).where(table.hash == key))
            if body is None:
                raise UsageError(f"the database has no {word} {key}: check AGENTFORGE_HOME and the name")
            return noun.model_validate_json(body)
