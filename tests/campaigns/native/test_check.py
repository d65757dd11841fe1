"""A task's own checker on a solution's output: both run in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from agentforge.campaigns.native.check import check_natively, native_verdict
from agentforge.campaigns.native.tolerance import SuiteTolerance
from agentforge.campaigns.suites import Selection, open_suite, selected
from agentforge.config import load_settings
from agentforge.referee import Referee
from agentforge.schema import Definition, NativeVerdict, Solution, StitchResult, Workload
from agentforge.store import Store
from tests.campaigns.suites.test_repositories import REFERENCE, write_task
from tests.campaigns.suites.test_traces import definition as sol_definition
from tests.campaigns.suites.test_traces import workload, write_sol
from tests.referee.judging import WORKLOAD, quick_referee, solution_of
from tests.store import nouns

ACCEPTING = "check_implementation = make_match_reference(ref_kernel)\n"
CHECKERS = {
    "accepting": "return make_match_reference(ref_kernel)(data, output)",
    "refusing": "return False, f'want zeros,\\nnot {output.ndim}-d'",
    "speaking": "return '' if output.shape == data[0].shape else 'another shape'",
    "raising": "raise RuntimeError('there is no GPU')",
    "curious": "open('/etc/passwd', 'a')",
}
RAISED = (None, "the checker gave no verdict (RuntimeError: there is no GPU)")
UNPACKED = "x, out, weights, config = data"


def definition(folder: Path, checker: str) -> Definition:
    """The first test of a task with one of the checkers, as a campaign's item loads it."""
    body = f"def check_implementation(data, output):\n    {CHECKERS[checker]}\n"
    reference = REFERENCE.replace(ACCEPTING, body)
    write_task(folder / "pmpp" / "scale_py", reference=reference)
    problem = selected(open_suite(f"gpu-mode:{folder}"), Selection(only="*/tests/1"))[0]
    assert problem.native["checker"] is True
    return Definition(name="scale", op_type="model", reference=problem.source)


class Gone:
    """A presenter that fails once it was shown the contract."""

    @staticmethod
    def subject(_: object, workloads: list[Workload], __: object, *, programs: list[Path]) -> NoReturn:
        assert workloads == [WORKLOAD], "the first one's tolerance must not judge another one's output"
        assert {f.name for f in programs[0].iterdir()} == {".owner", "definition.json", "tolerance.json"}
        raise RuntimeError(str(programs[0]))


def test_the_contract_is_in_a_folder_that_the_next_start_removes() -> None:
    contract = Definition(name="scale", op_type="model", reference="class Model(object): ...")
    with pytest.raises(RuntimeError, match="agentforge-native-") as raised:
        given = contract, [WORKLOAD, WORKLOAD.model_copy(update={"name": "larger"})], solution_of(contract)
        native_verdict(Gone, *given)  # type: ignore[arg-type]
    assert not Path(str(raised.value)).exists()


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    with quick_referee(tmp_path_factory.mktemp("referee")) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("checker", "verdict"),
    [
        ("speaking", (True, "")),
        ("raising", RAISED),
    ],
)
def test_the_checker_says_what_it_thinks(
    referee: Referee, tmp_path: Path, checker: str, verdict: tuple[bool | None, str]
) -> None:
    contract = definition(tmp_path, checker)
    assert native_verdict(referee, contract, [WORKLOAD], solution_of(contract)) == verdict


@pytest.mark.slow
def test_a_wrong_output_is_refused_and_a_crash_gives_no_answer(referee: Referee, tmp_path: Path) -> None:
    contract = definition(tmp_path, "accepting")
    wrong = solution_of(contract, ('* config["factor"]', '* config["factor"] + 1'))
    assert native_verdict(referee, contract, [WORKLOAD], wrong) == (False, "")
    crashing = solution_of(contract, (UNPACKED, "import os; os.abort()"))
    accepted, words = native_verdict(referee, contract, [WORKLOAD], crashing)
    assert accepted is None
    assert words.startswith("the solution gave no answer to check")


@pytest.mark.slow
def test_what_a_solution_leaves_does_not_speak_for_the_checker(referee: Referee, tmp_path: Path) -> None:
    """It runs first, in the folder of the checker's verdict."""
    contract = definition(tmp_path, "raising")
    lies = "import json; open('verdict.json', 'w').write(json.dumps({'accepted': True, 'message': ''}))"
    modules = "[open(f'{m}.py', 'w').write('raise SystemExit(0)') for m in ('torch', 'agentforge', 'json')]"
    lying = solution_of(contract, (UNPACKED, f"{lies}; {modules}; {UNPACKED}"))
    assert native_verdict(referee, contract, [WORKLOAD], lying) == RAISED


@pytest.mark.slow
def test_the_checker_is_confined(referee: Referee, tmp_path: Path) -> None:
    contract = definition(tmp_path, "curious")
    accepted, words = native_verdict(referee, contract, [WORKLOAD], solution_of(contract))
    assert accepted is None
    assert "Read-only" in words or "Permission denied" in words


@pytest.mark.slow
def test_a_suites_own_tolerance_judges_beside_the_reference(referee: Referee, tmp_path: Path) -> None:
    write_sol(tmp_path, sol_definition(), workload(3))
    (problem,) = selected(open_suite(f"sol:{tmp_path}"), Selection())
    contract = Definition(name="scaled", op_type="model", reference=problem.source)
    rough = solution_of(contract, ("return run(x, y, scale)", "return run(x, y, scale) * 1.005"))
    loose = SuiteTolerance.model_validate(problem.native["tolerance"])
    tight = loose.model_copy(update={"max_rtol": 1e-5, "max_atol": 1e-5})
    accepted, words = native_verdict(referee, contract, [WORKLOAD], rough, tolerance=loose)
    assert accepted is True and words.startswith("by the suite's own tolerance right: 100.0000% of")
    accepted, words = native_verdict(referee, contract, [WORKLOAD], rough, tolerance=tight)
    assert accepted is False and words.startswith("by the suite's own tolerance wrong: ")


class TestRuns:
    """The verdict becomes a record of the run, once for each result."""

    @pytest.fixture
    def store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
        monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "home"))
        with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as opened:
            yield opened

    def finish(self, store: Store, tmp_path: Path, mode: str = "kernels") -> Solution:
        contract = definition(tmp_path / "suite", "refusing")
        made = solution_of(contract)
        target = nouns.target().model_copy(update={"definition": contract, "workloads": (WORKLOAD,)})
        store.create_run(nouns.run(target=store.save_target(target)))
        store.save_solution(nouns.solution())
        identifier = store.save_evaluation(nouns.evaluation(), nouns.run().id)
        solution = store.save_solution(made)
        result = StitchResult(mode=mode, proven=True, solution=solution, evaluation=identifier)
        store.save_record(nouns.run().id, result)
        return made

    @pytest.mark.slow
    def test_a_refusal_is_kept(self, store: Store, tmp_path: Path) -> None:
        self.finish(store, tmp_path)
        run, settings = nouns.run().id, load_settings(["referee.threads=1"])
        check_natively(store, run, settings, "cpu")
        found = store.get_record(run, NativeVerdict)
        assert found is not None
        assert (found.accepted, found.message) == (False, "want zeros, not 1-d")

    @pytest.mark.parametrize("mode", ["eager", "compile", "compile+graph"])
    def test_a_baseline_is_not_checked(self, store: Store, tmp_path: Path, mode: str) -> None:
        self.finish(store, tmp_path, mode)
        check_natively(store, nouns.run().id, load_settings([]), "cpu")
        assert store.get_record(nouns.run().id, NativeVerdict) is None

    def test_what_judged_is_named(self, store: Store, tmp_path: Path) -> None:
        self.finish(store, tmp_path)
        run = nouns.run().id
        check_natively(store, run, load_settings([]), "nothing", tolerance={})
        found = store.get_record(run, NativeVerdict)
        assert found is not None
        assert found.criterion == "the suite's own tolerance"
        assert NativeVerdict(evaluation="e").criterion == "the task's own checker"

    def test_a_result_is_checked_once_and_a_failure_is_kept(self, store: Store, tmp_path: Path) -> None:
        self.finish(store, tmp_path)
        run = nouns.run().id
        check_natively(store, run, load_settings([]), "nothing")  # no such device
        found = store.get_record(run, NativeVerdict)
        assert found is not None
        assert found.accepted is None
        assert "nothing" in found.message
        check_natively(store, run, load_settings([]), "cpu")
        assert store.get_record(run, NativeVerdict) == found
