"""Messages between the referee and its workers: length-prefixed JSON on a Unix socket, descriptors beside it.

Nothing that arrives is ever unpickled or executed. A message is a JSON object of bounded length; tensors
travel in shared memory (see `memory`), whose descriptors only the referee sends.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_MESSAGE = 8 << 20
"""Bytes of the longest message that is read."""
_MAX_FDS = 16
_LENGTH = struct.Struct("!I")
_CREDENTIALS = struct.Struct("3i")


class ChannelClosed(Exception):
    """The other side is gone."""


class ChannelTimeout(Exception):
    """Nothing complete came in time."""


class ProtocolViolation(Exception):
    """What came is no message, or not the one that was due."""


@dataclass(frozen=True)
class Message:
    """One received message."""

    body: dict[str, Any]
    fds: tuple[int, ...] = ()
    pid: int = 0
    """Sender's process as the receiver sees it, where credentials were asked for."""


class Channel:
    """One end of a stream socket. Not thread-safe.

    Args:
        sock: connected AF_UNIX stream socket; the channel owns it.
        credentials: ask the kernel for the sender's pid with each message, in the receiver's namespace.
        accept_fds: take descriptors; without it the kernel drops what a peer sends.
    """

    def __init__(self, sock: socket.socket, *, credentials: bool = False, accept_fds: bool = False) -> None:
        self.sock = sock
        self._credentials = credentials
        self._accept_fds = accept_fds
        if credentials:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def send(self, body: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message.

        Raises:
            ChannelClosed: the other side is gone.
        """
        self.send_encoded(encode(body), fds)

    def send_encoded(self, data: bytes, fds: Sequence[int] = ()) -> None:
        """Send what `encode` made: the timed path prepares its bytes before the clock starts."""
        try:
            self.sock.settimeout(None)
            if fds:
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
                sent = self.sock.sendmsg([data], ancillary)
                data = data[sent:]
            self.sock.sendall(data)
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self, timeout_s: float | None = None) -> Message:
        """Wait for one message.

        Raises:
            ChannelClosed, ChannelTimeout, ProtocolViolation
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        fds: list[int] = []
        head, pid = self._exactly(_LENGTH.size, deadline, fds)
        (length,) = _LENGTH.unpack(head)
        if length > MAX_MESSAGE:
            raise ProtocolViolation(f"a message of {length} bytes")
        data, _ = self._exactly(length, deadline, fds)
        try:
            body = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ProtocolViolation("a message that is not JSON") from error
        if not isinstance(body, dict):
            raise ProtocolViolation("a message that is not a JSON object")
        return Message(body, tuple(fds), pid)

    def _exactly(self, count: int, deadline: float | None, fds: list[int]) -> tuple[bytes, int]:
        data, pid = b"", 0
        while len(data) < count:
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                raise ChannelTimeout
            self.sock.settimeout(remaining)
            try:
                piece, sender = self._read(count - len(data), fds)
            except TimeoutError as error:
                raise ChannelTimeout from error
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not piece:
                raise ChannelClosed("end of stream")
            data += piece
            pid = sender or pid
        return data, pid

    def _read(self, count: int, fds: list[int]) -> tuple[bytes, int]:
        if not (self._credentials or self._accept_fds):
            return self.sock.recv(count), 0
        space = socket.CMSG_SPACE(_CREDENTIALS.size)
        if self._accept_fds:
            space += socket.CMSG_SPACE(_MAX_FDS * array.array("i").itemsize)
        data, ancillary, _, _ = self.sock.recvmsg(count, space)
        pid = 0
        for level, kind, payload in ancillary:
            if level != socket.SOL_SOCKET:
                continue
            if kind == socket.SCM_RIGHTS:
                received = array.array("i")
                received.frombytes(payload[: len(payload) - len(payload) % received.itemsize])
                self._keep(received, fds)
            elif kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(payload[: _CREDENTIALS.size])[0]
        return data, pid

    def _keep(self, received: array.array[int], fds: list[int]) -> None:
        for fd in received:
            if self._accept_fds and len(fds) < _MAX_FDS:
                os.set_inheritable(fd, False)
                fds.append(fd)
            else:
                os.close(fd)


def encode(body: Mapping[str, Any]) -> bytes:
    """A message's bytes: length and JSON."""
    data = json.dumps(body, separators=(",", ":")).encode()
    return _LENGTH.pack(len(data)) + data


def pair(*, credentials: bool = False) -> tuple[Channel, socket.socket]:
    """The referee's channel and the socket to hand to a worker."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(ours, credentials=credentials), theirs
