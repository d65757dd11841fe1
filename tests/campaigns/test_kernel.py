"""`optimize` of a user's kernel and of a sequential function, as a user runs it and without a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Run, home, run

from .test_given import KERNEL, REFERENCE

__all__ = ["home", "run"]

QUICK = (
    "--json", "--device", "cpu", "-c", "referee.compile_baseline=false", "-c", "referee.quick_seconds=0.2",
    "-c", "referee.quick_blocks=2", "-c", "referee.full_seconds=0.3", "-c", "referee.full_blocks=4",
    "-c", "referee.threads=2",
)  # fmt: skip


def tried(run: Run, answer: Answer) -> list[tuple[str, str]]:
    assert answer.code == 0, answer.err + answer.out
    assert answer.json["run"]["status"] == "finished"
    shown = run("runs", "show", answer.json["run"]["id"], "--json").json
    return [(t["plan"]["strategy"], t["result"]["status"]) for t in shown["tried"]]


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        ("rms.cpp", (), "--reference ref.py"),
        ("rms.cpp", ("--reference", "ref.py", "--from", "sequential"), "three ways to begin"),
        ("rms.cpp", ("--from", "parallel"), "--from sequential"),
        ("rms.cpp", ("--from", "sequential", "--input-shape", "12"), "--input-shape n=1048576"),
        ("rms.cpp", ("--from", "sequential"), "has several sizes"),
        ("none.cpp", ("--from", "sequential"), "cannot be read"),
        ("", (), "say what to optimize"),
        ("model.py", ("--intent", "softmax"), "leave out model.py"),
    ],
)
def test_what_does_not_go_together(
    run: Run, tmp_path: Path, target: str, options: tuple[str, ...], says: str
) -> None:
    (tmp_path / "rms.cpp").write_text(KERNEL)
    answer = run("optimize", *([target] if target else []), *options, "--device", "cpu")
    assert answer.code == 2
    assert says in answer.err


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline", "no_torch_compile")
def test_a_users_kernel_is_the_first_attempt_and_the_result_where_it_wins(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "rms.cpp").write_text(KERNEL)
    out = tmp_path / "out"
    answer = run("optimize", "rms.cpp", "--reference", "ref.py", "--attempts", "1", "--out", str(out), *QUICK)
    assert tried(run, answer) == [("given-kernel", "PASSED")]
    if answer.json["regions"][0]["solution"]:  # it depends on what is measured here
        assert (out / "model_new.py").is_file()
        assert (out / "reference.py").read_text() == REFERENCE


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline", "no_torch_compile")
def test_a_wrong_kernel_is_found_out_and_a_torch_one_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    model = REFERENCE.split("def get_inputs")[0].replace("class Model(", "class ModelNew(")
    (tmp_path / "wrong.py").write_text(model.replace("1e-6", "1e-1"))
    answer = run("optimize", "wrong.py", "--reference", "ref.py", "--attempts", "1", *QUICK)
    assert tried(run, answer) == [("given-kernel", "INCORRECT_NUMERICAL")]
    assert not answer.json["regions"][0]["solution"]


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline", "no_torch_compile")
def test_a_sequential_function_gets_parallel_versions(run: Run, tmp_path: Path) -> None:
    (tmp_path / "norm.cpp").write_text(KERNEL.replace("void rms", "void norm"))
    sizes = ("rows=64", "cols=515", "x=64,515", "weight=515", "out=64,515")
    shapes = [word for size in sizes for word in ("--input-shape", size)]
    answer = run("optimize", "norm.cpp", "--from", "sequential", *shapes, "--attempts", "2", *QUICK)
    assert tried(run, answer) == [("native-code", "PASSED"), ("parallel-loops", "PASSED")]
