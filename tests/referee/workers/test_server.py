"""The worker's loop, over a real pair of sockets, with a process of its own at the other end."""

from __future__ import annotations

import multiprocessing
import os
import socket
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from agentforge.referee.timing.gpu.device import HostClock
from agentforge.referee.workers import arguments, server
from agentforge.referee.workers.failures import ErrorCode
from agentforge.referee.workers.memory.shared_memory import Block, Layout, in_pages
from agentforge.referee.workers.protocol import Channel, ChannelClosed, Message, pair
from agentforge.referee.workers.pytree import Leaf, parse_leaves
from agentforge.referee.workers.runner import DeviceRunner
from agentforge.referee.workers.server import Server, detached

MODEL = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x[0] < 0:
            raise ValueError("negative")
        if x[0] > 99:
            return x.repeat(1 << 16)
        return x + 1
"""
TIMEOUT_S = 60.0
INPUT = Layout.dense([4], "float32", 0)


def serve(connection: socket.socket, inherited: int) -> None:
    os.close(inherited)  # the referee's end, which must not stay open here when the referee closes it
    Server(Channel(connection, accept_fds=True)).run()


@pytest.fixture
def referee() -> Iterator[Channel]:
    """The referee's end; a forked process serves the other one."""
    ours, theirs = pair()
    process = multiprocessing.get_context("fork").Process(
        target=serve, args=(theirs, ours.fileno()), daemon=True
    )
    process.start()
    theirs.close()
    yield ours
    ours.close()
    process.join(10)
    assert process.exitcode == 0, "a worker ends when the referee hangs up"


def ask(channel: Channel, body: dict[str, Any], *fds: int) -> dict[str, Any]:
    channel.send({"id": "1", **body}, fds)
    message: Message = channel.receive(TIMEOUT_S)
    assert message.body["id"] == "1"
    return message.body


def load(channel: Channel, folder: Path) -> dict[str, Any]:
    (folder / "model_new.py").write_text(MODEL)
    weights = Block.create("weights", 64)
    body = {
        "op": "load", "folder": str(folder), "module": "model_new", "class": "ModelNew",
        "init": arguments.encode([], lambda tensor: INPUT), "state": {}, "seed": 1, "threads": 1,
        "device": "cpu", "events": True, "compiled": "",
    }  # fmt: skip
    reply = ask(channel, body, weights.fd)
    weights.close()
    return reply


def give_workload(channel: Channel, outputs: Block) -> Block:
    """Returns the memory of its inputs."""
    encoded = {"args": [{"tensor": INPUT.to_json()}], "kwargs": {}}
    body = {"op": "workload", "arguments": encoded, "slot_bytes": INPUT.nbytes, "slots": 1}
    inputs = Block.create("inputs", in_pages(INPUT.nbytes))
    body |= {"copy": False, "written": [], "guards": []}
    assert "error" not in ask(channel, body, inputs.fd, outputs.fd)
    return inputs


def call(channel: Channel, inputs: Block, first: float) -> dict[str, Any]:
    """Run the model on a tensor that begins with this value."""
    inputs.tensor(INPUT).copy_(torch.full((4,), first))
    return ask(channel, {"op": "call", "slot": 0, "keep": 1})


def test_a_call_is_answered_and_its_output_described(referee: Channel, tmp_path: Path) -> None:
    assert load(referee, tmp_path)["weights"] == "seed"
    outputs = Block.create("outputs", 1 << 16)
    inputs = give_workload(referee, outputs)
    reply = call(referee, inputs, 2.0)
    assert reply["leaves"][0][:3] == ["out", [4], "float32"]
    put = ask(referee, {"op": "put", "which": 0, "slot": 0})
    (spec,) = parse_leaves(put, outputs.nbytes)
    assert spec.layout is not None
    assert outputs.read(spec.layout).tolist() == [3.0] * 4
    outputs.close()


def test_only_other_tensors_on_the_memory_of_an_answer_may_be_kept(referee: Channel, tmp_path: Path) -> None:
    value = torch.ones(4)
    tensor, scalar = detached([Leaf("out[0]", value), Leaf("out[1]", 3)])
    assert tensor.value is not value
    assert tensor.value.data_ptr() == value.data_ptr()
    assert scalar == Leaf("out[1]", 3)
    load(referee, tmp_path)
    outputs = Block.create("outputs", 1 << 16)
    give_workload(referee, outputs).tensor(INPUT).fill_(1.0)
    reply = ask(referee, {"op": "call", "slot": 0, "keep": 1, "views": 1})
    (spec,) = parse_leaves(ask(referee, {"op": "put", "which": 0, "slot": 0}), outputs.nbytes)
    assert reply["leaves"][0][:3] == ["out", [4], "float32"]
    assert spec.layout is not None and outputs.read(spec.layout).tolist() == [2.0] * 4
    outputs.close()


def test_an_exception_in_forward_is_a_reply_and_the_worker_goes_on(referee: Channel, tmp_path: Path) -> None:
    load(referee, tmp_path)
    outputs = Block.create("outputs", 1 << 16)
    inputs = give_workload(referee, outputs)
    error = call(referee, inputs, -1.0)["error"]
    assert (error["code"], error["type"], error["message"]) == (ErrorCode.EXCEPTION, "ValueError", "negative")
    assert "model_new.py" in error["traceback"]
    assert "error" not in call(referee, inputs, 1.0)
    outputs.close()


def test_an_output_that_does_not_fit_is_refused(referee: Channel, tmp_path: Path) -> None:
    load(referee, tmp_path)
    outputs = Block.create("outputs", 1 << 12)
    inputs = give_workload(referee, outputs)
    assert "error" not in call(referee, inputs, 100.0)
    error = ask(referee, {"op": "put", "which": 0, "slot": 0})["error"]
    assert error["code"] == ErrorCode.UNUSABLE_OUTPUT
    assert "larger than the reference's" in error["message"]
    outputs.close()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"op": "unknown"}, "KeyError"),
        ({}, "KeyError"),
        ({"op": ["call"]}, "TypeError"),
        ({"op": "call"}, "AssertionError"),
        ({"op": "workload", "slot_bytes": "many"}, "ValueError"),
        ({"op": "put", "which": 0, "slot": 0}, "AssertionError"),
    ],
)
def test_a_request_that_makes_no_sense_is_an_error_reply(
    referee: Channel, body: dict[str, Any], kind: str
) -> None:
    error = ask(referee, body)["error"]
    assert error["code"] == ErrorCode.EXCEPTION
    assert error["type"] == kind
    assert "error" in ask(referee, {"op": "still there"})


def test_a_message_that_is_not_json_ends_the_worker() -> None:
    ours, theirs = pair()
    process = multiprocessing.get_context("fork").Process(
        target=_quiet, args=(theirs, ours.fileno()), daemon=True
    )
    process.start()
    theirs.close()
    ours.send_encoded(b"\0\0\0\2}{")
    with pytest.raises(ChannelClosed):
        ours.receive(TIMEOUT_S)
    process.join(10)
    assert process.exitcode not in (0, None)
    ours.close()


def _quiet(connection: socket.socket, inherited: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    serve(connection, inherited)


class Simulated(HostClock):
    """A device that counts what it is asked, and may be lost."""

    def __init__(self) -> None:
        self.released, self.lost = 0, False

    def release(self) -> None:
        self.released += 1

    def usable(self) -> bool:
        return not self.lost


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, Simulated]]:
    """A worker on a simulated device, with a workload of one slot."""
    monkeypatch.setattr(server, "level_allocator", lambda blocked: None)
    device, ours, theirs = Simulated(), *pair()
    worker = Server(theirs)
    worker._runner = DeviceRunner(torch.device("cpu"), device)
    worker._model = lambda x: x + 1
    blocks = [Block.create(name, in_pages(INPUT.nbytes)) for name in ("inputs", "outputs")]
    encoded = {"args": [{"tensor": INPUT.to_json()}], "kwargs": {}}
    body = {"op": "workload", "arguments": encoded, "slot_bytes": INPUT.nbytes, "slots": 1}
    body |= {"copy": False, "written": [], "guards": []}
    assert "error" not in worker.answer(body, tuple(os.dup(block.fd) for block in blocks))
    yield worker, device
    for block in blocks:
        block.close()
    ours.close()
    theirs.close()


def test_a_device_gets_its_memory_back_between_parts_of_an_evaluation(
    on_device: tuple[Server, Simulated],
) -> None:
    worker, device = on_device
    assert device.released == 1
    worker.answer({"op": "call", "slot": 0}, ())
    assert worker._kept and worker._brought
    worker.answer({"op": "rest"}, ())
    assert device.released == 2
    assert not worker._kept and not worker._brought


def test_inputs_of_the_last_call_make_room_for_those_of_the_next(
    on_device: tuple[Server, Simulated], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, _ = on_device
    worker.answer({"op": "call", "slot": 0}, ())
    last, gone = weakref.ref(worker._brought[0][0][0]), []
    bring = worker._runner.bring

    def noted(value: Any) -> Any:
        gone.append(last() is None)
        return bring(value)

    monkeypatch.setattr(worker._runner, "bring", noted)
    worker.answer({"op": "call", "slot": 0}, ())
    assert gone == [True]


def test_an_error_says_whether_the_device_was_lost(on_device: tuple[Server, Simulated]) -> None:
    worker, device = on_device
    assert worker.answer({"op": "call", "slot": 9}, ())["error"]["code"] == ErrorCode.EXCEPTION
    device.lost = True
    assert worker.answer({"op": "call", "slot": 9}, ())["error"]["code"] == ErrorCode.DEVICE_LOST
