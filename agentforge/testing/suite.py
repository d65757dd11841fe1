"""The contract of a `Suite`, as tests that every implementation inherits.

class TestMySuite(SuiteContract):
    name = "mine"

    def good(self, folder): ...  # write a suite with at least two problems; return what follows the colon

    def missing(self, folder): ...  # the same for a suite that is not there
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import pytest

from agentforge.campaigns.suites import Selection, Suite, open_suite, selected
from agentforge.schema import SuiteProblem, UsageError


class SuiteContract(ABC):
    """What every suite must do."""

    name: ClassVar[str]
    """As it is registered."""

    @abstractmethod
    def good(self, folder: Path) -> str:
        """Write a suite of at least two problems below `folder`; what follows the colon."""

    @abstractmethod
    def missing(self, folder: Path) -> str:
        """What follows the colon for a suite that is not there."""

    def half_there(self, folder: Path) -> str:
        """What follows the colon for a suite that was copied in part; a suite that is one file has none."""
        pytest.skip("this suite cannot be half there")

    def broken_in_part(self, folder: Path) -> str:
        """What follows the colon for a suite of several tasks, of which only one cannot be read."""
        pytest.skip("this suite is read as a whole")

    def open(self, where: str) -> Suite:
        """The suite, as the command line opens it."""
        return open_suite(f"{self.name}:{where}")

    def test_says_its_name_and_form(self, tmp_path: Path) -> None:
        suite = self.open(self.good(tmp_path))
        assert suite.name == self.name
        assert suite.form.startswith(f"{self.name}:")
        assert all(name == name.strip() and name for name in suite.packages)

    def test_problems_have_unique_identifiers_and_a_fixed_order(self, tmp_path: Path) -> None:
        where = self.good(tmp_path)
        first, second = (selected(self.open(where), Selection()) for _ in range(2))
        assert len({problem.id for problem in first}) == len(first) > 1
        assert first == second
        assert [problem.hash for problem in first] == [problem.hash for problem in second]

    def test_a_problem_survives_the_database(self, tmp_path: Path) -> None:
        for problem in selected(self.open(self.good(tmp_path)), Selection()):
            assert SuiteProblem.model_validate_json(problem.model_dump_json()) == problem

    def test_a_problem_of_one_file_has_its_text(self, tmp_path: Path) -> None:
        for problem in selected(self.open(self.good(tmp_path)), Selection()):
            if problem.file:
                assert problem.file in problem.target
                ast.parse(problem.source)
            if problem.file and Path(problem.file).exists():
                assert problem.source == Path(problem.file).read_text(encoding="utf-8")

    def test_a_problem_can_run_or_says_why_not(self, tmp_path: Path) -> None:
        for problem in selected(self.open(self.good(tmp_path)), Selection()):
            assert "\n" not in problem.unsupported
            assert problem.unsupported or problem.source or not problem.file

    def test_the_workloads_of_a_definition_have_its_name_and_group(self, tmp_path: Path) -> None:
        by_definition: dict[str, list[SuiteProblem]] = {}
        problems = list(self.open(self.good(tmp_path)).problems(Selection()))
        for problem in problems:
            if problem.definition:
                by_definition.setdefault(problem.definition, []).append(problem)
                assert problem.id.startswith(f"{problem.definition}/")
        for whole in (problem for problem in problems if problem.id in by_definition):
            assert whole.group == by_definition[whole.id][0].group
            assert not whole.definition
        for workloads in by_definition.values():
            assert len(workloads) > 1
            assert len({workload.group for workload in workloads}) == 1

    def test_a_pattern_selects_problems(self, tmp_path: Path) -> None:
        suite = self.open(self.good(tmp_path))
        one = selected(suite, Selection())[-1]
        assert selected(suite, Selection(only=one.id)) == (one,)
        with pytest.raises(UsageError, match="choose another pattern"):
            selected(suite, Selection(only="no such problem"))

    def test_a_missing_suite_is_one_clear_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="name") as caught:
            selected(self.open(self.missing(tmp_path)), Selection())
        assert "\n" not in str(caught.value)

    def test_a_suite_that_is_half_there_is_one_clear_sentence(self, tmp_path: Path) -> None:
        where = self.half_there(tmp_path)
        with pytest.raises(UsageError) as caught:
            selected(self.open(where), Selection())
        assert "\n" not in str(caught.value)
        assert str(tmp_path) in str(caught.value)

    def test_a_task_that_cannot_be_read_is_unsupported_and_the_others_stay(self, tmp_path: Path) -> None:
        suite = self.open(self.broken_in_part(tmp_path))
        found = selected(suite, Selection())
        (broken,) = (problem for problem in found if problem.unsupported)
        assert not broken.source
        assert "correct it" in broken.unsupported
        assert "\n" not in broken.unsupported
        assert str(tmp_path) not in broken.unsupported, "a problem has one hash on all machines"
        other = next(problem for problem in found if problem != broken)
        assert selected(suite, Selection(only=other.id)) == (other,)
