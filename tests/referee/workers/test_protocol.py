from __future__ import annotations

import json
import os
import socket
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.referee.workers.protocol import (
    MAX_MESSAGE,
    Channel,
    ChannelClosed,
    ChannelTimeout,
    ProtocolViolation,
    encode,
    pair,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_what_is_sent_arrives(body):
    ours, theirs = pair()
    other = Channel(theirs)
    other.send(body)
    assert ours.receive(1.0).body == body
    ours.close()
    other.close()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"x": "a\\udcff"}', "a?"),
        (b'{"x": "a\xed\xb3\xbf"}', "a\ufffd\ufffd\ufffd"),
        (b'{"x": "\\ud83d\\ude00"}', "\U0001f600"),
    ],
)
def test_what_arrives_can_be_encoded_again(data, text):
    ours, theirs = pair()
    theirs.sendall(struct.pack("!I", len(data)) + data)
    assert ours.receive(1.0).body == {"x": text}
    ours.close()
    theirs.close()


def test_a_message_in_pieces_is_put_together():
    ours, theirs = pair()
    data = encode({"x": "y" * 100_000})
    writer = threading.Thread(
        target=lambda: [theirs.sendall(data[i : i + 7919]) for i in range(0, len(data), 7919)]
    )
    writer.start()
    assert ours.receive(5.0).body == {"x": "y" * 100_000}
    writer.join()
    ours.close()
    theirs.close()


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("!I", 5) + b"hello",
        struct.pack("!I", 2) + b"[]",
        encode({"ns": 10**400}),
        encode({"ns": [1 << 64]}),
        encode({"ns": -(1 << 63) - 1}),
        struct.pack("!I", MAX_MESSAGE + 1),
        struct.pack("!I", 4) + b"\x80\x04K\x01",
        struct.pack("!I", 200_000) + b"[" * 200_000,
    ],
    ids=["text", "array", "400 digits", "65 bits", "below", "too long", "pickle", "deep"],
)
def test_rubbish_is_a_violation(data):
    ours, theirs = pair()
    sender = threading.Thread(target=theirs.sendall, args=(data,))
    sender.start()
    with pytest.raises(ProtocolViolation):
        ours.receive(5.0)
    sender.join()
    ours.close()
    theirs.close()


def test_silence_is_a_timeout_and_hanging_up_is_the_end():
    ours, theirs = pair()
    with pytest.raises(ChannelTimeout):
        ours.receive(0.01)
    theirs.sendall(struct.pack("!I", 10) + b"half")
    theirs.close()
    with pytest.raises(ChannelClosed):
        ours.receive(1.0)
    with pytest.raises(ChannelClosed):
        for _ in range(3):
            ours.send({})
    ours.close()


def test_descriptors_travel_to_who_takes_them():
    ours, theirs = pair()
    other = Channel(theirs, accept_fds=True)
    read, write = os.pipe()
    ours.send({"op": "x"}, [write])
    os.close(write)
    message = other.receive(1.0)
    os.write(message.fds[0], b"hello")
    assert os.read(read, 10) == b"hello"
    os.close(message.fds[0])
    os.close(read)
    ours.close()
    other.close()


def test_descriptors_of_a_hostile_peer_are_dropped():
    ours, theirs = pair(credentials=True)
    other = Channel(theirs)
    read, write = os.pipe()
    pipe = Path(f"/proc/self/fd/{read}").readlink()
    for _ in range(20):
        other.send({"op": "x"}, [read, write])
    os.close(read)
    os.close(write)
    for _ in range(20):
        message = ours.receive(1.0)
        assert message.fds == ()
        assert message.pid == os.getpid()
    assert pipe not in [fd.readlink() for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    ours.close()
    other.close()


def test_encoding_is_length_and_json():
    data = encode({"a": 1})
    assert struct.unpack("!I", data[:4])[0] == len(data) - 4
    assert json.loads(data[4:]) == {"a": 1}
    assert socket.AF_UNIX


def test_messages_that_come_together_are_told_apart():
    ours, theirs = pair()
    theirs.sendall(encode({"n": 1}) + encode({"n": 2}) + encode({"n": 3})[:-2])
    assert ours.receive(1.0).body == {"n": 1}
    assert ours.arrives(0)
    assert ours.receive(1.0).body == {"n": 2}
    with pytest.raises(ChannelTimeout):
        ours.receive(0.01)
    theirs.sendall(encode({"n": 3})[-2:])
    assert ours.receive(1.0).body == {"n": 3}
    assert not ours.arrives(0)
    ours.close()
    theirs.close()


def test_credentials_are_no_longer_asked_for():
    ours, theirs = pair(credentials=True)
    other = Channel(theirs)
    other.send({})
    assert ours.receive(1.0).pid == os.getpid()
    ours.forget_credentials()
    other.send({})
    assert ours.receive(1.0).pid == 0
    ours.close()
    other.close()
