"""One model in a process of its own, run by one compiler or runtime, for `peers.py`.

A timed call reads tensors that are already in the runtime's form and leaves its outputs in that form, so no
runtime pays for conversions.
"""

from __future__ import annotations

import copy
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from agentforge.api.artifact import load
from agentforge.isolation.linux import die_with_parent
from agentforge.problems.kernelbench import load_problem
from agentforge.schema import Definition

from .process import started

Tensors = list[torch.Tensor]
Call = Callable[[], Any]
"""One call on the inputs that the process has."""
_READY_S, _END_S = 900.0, 10.0
_WEIGHTS = 0
"""Seed of the weights, the same in every process."""
_MOST_WORDS = 200


@dataclass(frozen=True)
class Job:
    """What a process runs."""

    party: str
    """Of `PARTIES`."""
    definition: dict[str, Any]
    seed: int
    """Of the inputs."""
    threads: int
    folder: Path
    """For exported graphs, `artifact` and answers."""


class PartyRefused(Exception):
    """A party cannot run the model; the message is the reason."""


class Party:
    """A process that waits, stopped, between its turns.

    Raises:
        PartyRefused: it cannot run the model.
    """

    def __init__(self, job: Job) -> None:
        self._connection, self._process = started(serve, job)
        try:
            self.version: str = self._receive()
        except PartyRefused:
            self.close()
            raise
        self._stop()

    def turn(self, calls: int) -> float:
        """Mean seconds of some calls in a row, after untimed ones."""
        return float(self._ask(calls))

    def answer(self) -> Path:
        """File with the tensors that one call gives."""
        return Path(self._ask("answer"))

    def exact(self) -> Path:
        """File with the tensors that eager computes in float64."""
        return Path(self._ask("exact"))

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        os.kill(self._process.pid or 0, signal.SIGCONT)
        self._process.join(_END_S)
        self._process.kill()
        self._process.join()

    def _ask(self, what: int | str) -> Any:
        os.kill(self._process.pid or 0, signal.SIGCONT)
        self._connection.send(what)
        found = self._receive()
        self._stop()
        return found

    def _stop(self) -> None:
        os.kill(self._process.pid or 0, signal.SIGSTOP)

    def _receive(self) -> Any:
        if not self._connection.poll(_READY_S):
            raise PartyRefused(f"it did not answer within {_READY_S:g} s")
        try:
            reason, found = self._connection.recv()
        except EOFError:
            raise PartyRefused("its process died") from None
        if reason:
            raise PartyRefused(reason)
        return found


def serve(connection: Connection, job: Job) -> None:
    """Build the model, then answer each request; the first answer is a version."""
    die_with_parent()
    log = os.open(job.folder / f"{job.party}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(log, 1)  # exporters print and warn
    os.dup2(log, 2)
    try:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(job.folder / "inductor")
        torch.set_num_threads(job.threads)
        torch.set_grad_enabled(False)
        problem = load_problem(Definition.model_validate(job.definition))
        model = problem.build(_WEIGHTS)
        args, kwargs = problem.inputs(job.seed)
        version, call, tensors = PARTIES[job.party](model, args, kwargs, job)
        call()
        connection.send(("", version))
        while True:
            asked = connection.recv()
            connection.send(("", _answered(asked, call, tensors, job, model, (args, kwargs))))
    except EOFError:
        return
    except BaseException as error:
        connection.send((_reason(error), None))


def _answered(
    asked: int | str, call: Call, tensors: Callable[[Any], Tensors], job: Job, model: Any, inputs: Any
) -> Any:
    if isinstance(asked, int):
        for _ in range(min(asked, 2)):
            call()
        begin = time.perf_counter()
        for _ in range(asked):
            call()
        return (time.perf_counter() - begin) / asked
    path = job.folder / f"{job.party}.{asked}.pt"
    torch.save(tensors(call()) if asked == "answer" else _in_float64(model, *inputs), path)
    return str(path)


def _in_float64(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensors | None:
    """What eager gives in float64; None if it does not run in float64."""
    args, kwargs = pytree.tree_map(
        lambda x: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, (args, kwargs)
    )
    torch.set_default_dtype(torch.float64)
    try:
        return _leaves(copy.deepcopy(model).double()(*args, **kwargs))
    except Exception:
        return None
    finally:
        torch.set_default_dtype(torch.float32)


def _leaves(value: Any) -> Tensors:
    return [x for x in pytree.tree_leaves(value) if isinstance(x, torch.Tensor)]


def _reason(error: BaseException) -> str:
    text = str(error).strip() or "no message"
    return f"{type(error).__name__}: {' '.join(text.split())}"[:_MOST_WORDS]


# -- the parties: version, call, and how its result becomes tensors

Built = tuple[str, Call, Callable[[Any], Tensors]]


def eager(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job) -> Built:
    """PyTorch as it is."""
    return torch.__version__, lambda: model(*args, **kwargs), _leaves


def compiled(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job) -> Built:
    """torch.compile in its default mode."""
    fast = torch.compile(model)
    return torch.__version__, lambda: fast(*args, **kwargs), _leaves


def frozen(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job) -> Built:
    """torch.compile with Inductor's freezing."""
    import torch._inductor.config as inductor

    inductor.freezing = True  # Dynamo reads it too, so it is no option of one compilation
    return compiled(model, args, kwargs, job)


def agentforge(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job) -> Built:
    """The artifact in the job's folder."""
    artifact = load(job.folder / "artifact")
    return artifact.mode, *eager(artifact.optimize(model), args, kwargs, job)[1:]


def onnx_runtime(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job) -> Built:
    """ONNX Runtime on the graph that torch.onnx exports."""
    import onnxruntime
    from onnxruntime import OrtValue

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = job.threads, 1
    session = onnxruntime.InferenceSession(
        onnx_file(model, args, kwargs, job), options, providers=["CPUExecutionProvider"]
    )
    inputs = _given([i.name for i in session.get_inputs()], _leaves((args, kwargs)))
    feed = {name: OrtValue.from_dlpack(tensor.contiguous()) for name, tensor in inputs.items()}
    return (
        onnxruntime.__version__,
        lambda: session.run_with_ort_values(None, feed),
        lambda values: [torch.from_dlpack(value) for value in values],
    )


def openvino(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job) -> Built:
    """OpenVINO on the graph that torch.export gives, or on the ONNX file if it cannot read that graph.

    It computes in the model's own precision, which is not its default on every processor.
    """
    os.environ["CI"] = "true"  # its telemetry sends nothing then
    import openvino as ov

    core = ov.Core()
    try:
        graph = ov.convert_model(torch.export.export(model, args, kwargs))
    except Exception:
        graph = core.read_model(onnx_file(model, args, kwargs, job))
    settings = {"INFERENCE_NUM_THREADS": job.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(
        graph, "CPU", {**settings, "EXECUTION_MODE_HINT": "ACCURACY"}
    ).create_infer_request()
    given = _given(list(range(len(graph.inputs))), _leaves((args, kwargs)))
    arrays = [tensor.contiguous().numpy() for tensor in given.values()]
    for number, array in enumerate(arrays):
        request.set_input_tensor(number, ov.Tensor(array, shared_memory=True))

    def tensors(_: Any, keep: Any = arrays) -> Tensors:
        return [torch.from_numpy(t.data.copy()) for t in request.output_tensors]

    return str(ov.__version__).partition("-")[0], request.infer, tensors


def _given(names: list[Any], tensors: Tensors) -> dict[Any, torch.Tensor]:
    """The tensors by the graph's inputs, which are in the same order.

    Raises:
        PartyRefused: their numbers differ.
    """
    if len(names) != len(tensors):
        raise PartyRefused(f"the exported graph has {len(names)} inputs and the model {len(tensors)}")
    return dict(zip(names, tensors, strict=True))


def onnx_file(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], job: Job) -> str:
    """Export the model once."""
    path, begun = job.folder / "onnx" / "model.onnx", job.folder / f"onnx.{os.getpid()}"
    if not path.exists():
        begun.mkdir()
        program = torch.onnx.export(
            model, args, kwargs=kwargs, dynamo=True, external_data=True, verbose=False
        )
        program.save(begun / "model.onnx", external_data=True)
        shutil.rmtree(path.parent, ignore_errors=True)
        begun.rename(path.parent)
    return str(path)


PARTIES: dict[str, Callable[[torch.nn.Module, tuple[Any, ...], dict[str, Any], Job], Built]] = {
    "eager": eager,
    "control": eager,
    "torch.compile": compiled,
    "freezing": frozen,
    "ONNX Runtime": onnx_runtime,
    "OpenVINO": openvino,
    "AgentForge": agentforge,
}
"""Each party by its name; `control` is eager again, and shows how much the machine disturbs."""
