"""`optimize` of a user's kernel and of a sequential function, as a user runs it and without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentforge.config import Settings, load_settings
from agentforge.devices import DeviceSpec, detect
from agentforge.frontends import FrontendOptions
from agentforge.frontends.c_functions import choose_function
from agentforge.frontends.sequential import Sequential, reference
from agentforge.isolation.child_process import run_child
from agentforge.knowledge import context_for
from agentforge.knowledge.ranking.similarity import DEFAULT, similarity
from agentforge.languages import languages
from agentforge.runs.kinds.kernel import KernelStart, as_one
from agentforge.runs.kinds.sequential import SequentialStart
from agentforge.schema import Context, Definition, DType, Target, TensorInput, UsageError, Workload
from agentforge.store import Store
from tests.cli.conftest import Answer, Run, home, run
from tests.distributions import install
from tests.loop.scripted import bottleneck, profile

from .test_user_kernels import KERNEL, REFERENCE

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
        ("rms.cpp", ("--reference", "ref.py", "--from", "sequential"), "exclude each other"),
        ("rms.cpp", ("--from", "parallel"), "--from sequential"),
        ("rms.cpp", ("--from", "sequential", "--input-shape", "12"), "--input-shape n=1048576"),
        ("rms.cpp", ("--from", "sequential"), "has several sizes"),
        ("none.cpp", ("--from", "sequential"), "cannot be read"),
        ("", (), "name a target"),
        ("k.cu", ("--reference", "ref.py"), "cannot infer how k.cu is called"),
        ("no_kernel.py", ("--reference", "ref.py"), "ModelNew"),
        ("rms.cpp", ("--reference", "nowhere.py"), "does not exist"),
        ("rms.cpp", ("--reference", "ref.py", "-c", "search.language=nope"), "nope"),
        ("model.py", ("--intent", "softmax"), "leave out model.py"),
    ],
)
def test_what_does_not_go_together(
    run: Run, tmp_path: Path, target: str, options: tuple[str, ...], says: str
) -> None:
    (tmp_path / "rms.cpp").write_text(KERNEL)
    (tmp_path / "k.cu").touch()
    (tmp_path / "no_kernel.py").touch()
    (tmp_path / "ref.py").write_text("import time\ntime.sleep(60)\nclass Model: pass\n")  # it is not loaded
    answer = run("optimize", *([target] if target else []), *options, "--device", "cpu")
    assert answer.code == 2
    assert says in answer.err


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline", "no_slow_parts")
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
def test_a_sequential_function_is_run_once_when_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def counted(task: str, payload: Any, **options: Any) -> Any:
        ran.append(task)
        return run_child(task, payload, **options)

    monkeypatch.setattr("agentforge.frontends.sequential.run_child", counted)
    path = tmp_path / "two.c"
    path.write_text("void two(const float* x, float* out, int n) { for (int i = 0; i < n; i++) out[i] = 2; }")
    start, settings = SequentialStart(path, {"n": (64,)}), Settings(home=tmp_path / "home")
    start.check(settings, detect("cpu"))
    assert ran == []
    start.load(settings, detect("cpu"))
    assert ran == ["agentforge.frontends.sequential:contents_that_matter"]


def test_bare_cpp_needs_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "rms.cpp").write_text(KERNEL)
    start = KernelStart(tmp_path / "rms.cpp", str(tmp_path / "ref.py"), FrontendOptions())
    settings = Settings(home=tmp_path / "home")
    start.check(settings, detect("cpu"))
    start.check(settings, detect("null"))
    gpu = DeviceSpec(kind="cuda", name="a GPU", architecture="sm_90")
    with pytest.raises(UsageError, match=r"rms\.cpp is bare C\+\+.*add --device cpu"):
        start.check(settings, gpu)
    (tmp_path / "model_new.py").write_text(
        "class ModelNew: ...\n"
    )  # it may use a GPU, whatever lies beside it
    start.check(settings, gpu)


CUDA = """\
extern "C" __global__ void rms(const float* x, const float* weight, float* out, int cols) {
    const float* row = x + (long long)blockIdx.x * cols;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < cols; j += 32) sum += row[j] * row[j];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    const float scale = rsqrtf(sum / cols + 1e-6f);
    for (int j = threadIdx.x; j < cols; j += 32)
        out[(long long)blockIdx.x * cols + j] = row[j] * scale * weight[j];
}
"""
CUDA_MODEL = """\
import torch

from agentforge_cuda import load

kernels = load(__file__, "rms.cu")


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        out = torch.empty_like(x)
        kernels.rms(x, weight, out, x.shape[1], grid=x.shape[0], block=32)
        return out
"""


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline", "no_slow_parts")
def test_a_gpu_kernel_is_right_and_unverified_without_a_gpu(run: Run, tmp_path: Path) -> None:
    if not languages.create("cuda").available().ok:
        pytest.skip("CUDA C++ cannot be built here")
    files = {"rms.cu": CUDA, "model_new.py": CUDA_MODEL}
    (tmp_path / "ref.py").write_text(REFERENCE)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    answer = run("optimize", next(iter(files)), "--reference", "ref.py", "--attempts", "1", *QUICK)
    assert tried(run, answer) == [("given-kernel", "PASSED")]
    assert answer.json["headline"].startswith("a kernel is right, and not verified: ")
    assert "no GPU" in answer.json["headline"]
    assert not answer.json["run"]["artifact"]
    (note,) = [note for note in answer.json["notes"] if "is right, and unverified: " in note]
    kept = Path(note.rpartition(": ")[2])
    assert "no GPU" in (kept / "UNVERIFIED.md").read_text()
    assert {*files, "reference.py", "solution.json"} <= {file.name for file in kept.iterdir()}
    assert "right, unverified" in run("runs", "show", answer.json["run"]["id"], "--source").out


def test_a_bare_cuda_file_is_asked_how_it_is_launched(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "rms.cu").write_text(CUDA)
    answer = run("optimize", "rms.cu", "--reference", "ref.py", "--device", "cpu")
    assert answer.code == 2
    assert "write model_new.py with class ModelNew beside it" in answer.err
    alone = run("optimize", "rms.cu", "--device", "cpu")
    assert alone.code == 2
    assert "--reference ref.py" in alone.err


@pytest.mark.slow
@pytest.mark.usefixtures("known_roofline", "no_slow_parts")
def test_a_sequential_function_gets_parallel_versions(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "norm.cpp").write_text(KERNEL.replace("void rms", "void norm"))
    sizes = ("rows=64", "cols=515", "x=64,515", "weight=515", "out=64,515")
    shapes = [word for size in sizes for word in ("--input-shape", size)]
    answer = run("optimize", "norm.cpp", "--from", "sequential", *shapes, "--attempts", "2", *QUICK)
    assert tried(run, answer) == [("native-code", "PASSED"), ("parallel-loops", "PASSED")]
    with Store(f"sqlite:///{home}/agentforge.db") as store:
        kinds = {kind for outcome in store.outcomes() for kind, _ in outcome.context.operators}
    assert [kind.startswith("untraced-") for kind in kinds] == [True], "nothing in it is traced"


@pytest.mark.slow
def test_two_functions_in_files_of_one_name_keep_their_references(tmp_path: Path) -> None:
    """Another run may read the first one's at this moment."""
    settings, starts = Settings(home=tmp_path / "home"), []
    for factor in ("2.0f", "3.0f"):
        file = tmp_path / factor / "scale.c"
        file.parent.mkdir()
        loop = f"for (int i = 0; i < n; i++) out[i] = x[i] * {factor};"
        file.write_text(f"void scale(const float* x, float* out, int n) {{ {loop} }}\n")
        starts.append(SequentialStart(file, {"n": (8,)}).load(settings, detect("cpu")))
    texts = [path.read_text() for path in (tmp_path / "home" / "references").glob("*/scale.py")]
    assert sorted(texts) == sorted(start.target.definition.reference for start in starts)
    assert len(set(texts)) == 2


def test_a_run_of_one_kernel_offers_no_merges() -> None:
    parts = profile(bottleneck("a"), bottleneck("b"))
    target = Target(
        name="rms",
        origin="rms.py",
        definition=Definition(name="rms", op_type="model", reference=REFERENCE),
        workloads=parts.bottlenecks[0].workloads,
    )
    whole = as_one(parts.model_copy(update={"merges": (bottleneck("ab"),)}), target)
    assert len(whole.bottlenecks) == 1
    assert whole.merges == ()


SCAN = """\
void scan(const float* x, float* out, int n) {
    float s = 0;
    for (int i = 0; i < n; i++) out[i] = s += x[i];
}
"""


def context_of(source: str, size: int) -> Context:
    """The context of a run that begins with a C function of one size."""
    function = choose_function(source)
    arrays = dict.fromkeys(("x", "out"), (size,))
    found = Sequential(source, function, arrays, {"n": size}, frozenset({"x"}))
    x = TensorInput(name="x", shape=(size,), dtype=DType.FLOAT32)
    definition = Definition(name="f", op_type="model", reference=reference(found))
    call = Workload(name="f", inputs=(x,))
    target = Target(name="f", origin="f.c", definition=definition, workloads=(call,))
    return context_for(as_one(profile(bottleneck("f")), target).bottlenecks[0], detect("null"))


def test_experience_with_a_c_function_is_for_that_function() -> None:
    small, large = (context_of(SCAN, size) for size in (100, 1 << 24))
    assert small.same_operators(large)
    assert similarity(small, large) == pytest.approx(DEFAULT.shape)
    other = context_of(SCAN.replace("s += x[i]", "s = x[i] * 2"), 100)
    assert not small.same_operators(other)
    assert similarity(small, other) == similarity(large, other) == 0


def test_a_traced_kernel_has_the_operators_of_its_sites() -> None:
    parts = profile(bottleneck("a"), bottleneck("b"))
    sites = tuple(s.model_copy(update={"kinds": {"pointwise": 2, s.name: 1}}) for s in parts.call_sites)
    definition = Definition(name="rms", op_type="model", reference=REFERENCE)
    target = Target(
        name="rms", origin="rms.py", definition=definition, workloads=parts.bottlenecks[0].workloads
    )
    (site,) = as_one(parts.model_copy(update={"call_sites": sites}), target).call_sites
    assert site.kinds == {"pointwise": 4, "a": 1, "b": 1}


FRONTEND = f"""
from agentforge.frontends import make_target

SOURCE = {REFERENCE!r}


class Rows:
    name = "rows"
    form = "rows:NAME"

    def __init__(self, *, rows=32):
        self.rows = rows

    def accepts(self, spec):
        return spec.startswith("rows:")

    def load(self, spec, options):
        source = SOURCE.replace("32", str(self.rows))
        return make_target(name="rows", origin=spec, source=source, import_root=None, device=options.device)
"""


def test_the_reference_of_a_kernel_gets_the_options_of_its_frontend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = {"agentforge.frontends": {"rows": "rows_pack:Rows"}}
    install(monkeypatch, tmp_path / "site", "rows_pack", FRONTEND, entries)
    (tmp_path / "rms.cpp").write_text(KERNEL)
    start = KernelStart(tmp_path / "rms.cpp", "rows:any", FrontendOptions())
    found = start.load(load_settings(["frontend_options.rows.rows=8"]), detect("cpu"))
    assert found.target.workloads[0].inputs[0].shape == (8, 67)
