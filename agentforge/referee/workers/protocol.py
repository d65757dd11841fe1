"""Messages between the referee and its workers: length-prefixed JSON on a Unix socket, descriptors beside it.

Nothing that arrives is unpickled or executed. Tensors travel in shared memory, whose descriptors only the
referee sends.
"""

from __future__ import annotations

import array
import json
import math
import os
import select
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
_CREDENTIALS_SPACE = socket.CMSG_SPACE(_CREDENTIALS.size)
_FDS_SPACE = socket.CMSG_SPACE(_MAX_FDS * array.array("i").itemsize)
_AHEAD = 1 << 16
_MOST_DIGITS = 20
"""Of an integer of 64 bits, with its sign."""


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
    """Sender's process as the receiver sees it, if credentials were requested."""


class Channel:
    """One end of a stream socket.

    Args:
        sock: connected AF_UNIX stream socket; the channel owns it.
        credentials: ask the kernel for the sender's pid with each message, in the receiver's namespace.
        accept_fds: take descriptors; without it the kernel drops what a peer sends.
    """

    def __init__(self, sock: socket.socket, *, credentials: bool = False, accept_fds: bool = False) -> None:
        # It always blocks: a deadline is waited for by poll, which leaves the socket's mode alone.
        sock.settimeout(None)
        self.sock = sock
        self._credentials = credentials
        self._accept_fds = accept_fds
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self.deadline = math.inf
        """By `time.monotonic()`: `arrives` waits no longer, whatever its caller allows."""
        self._buffer = b""
        """Bytes received ahead, if no descriptors or credentials are expected."""
        if credentials:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def forget_credentials(self) -> None:
        """From now on senders are no longer asked for: messages come in one piece, and faster."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        self._credentials = False

    def send(self, body: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message.

        Raises:
            ChannelClosed: the other side is gone.
        """
        self.send_encoded(encode(body), fds)

    def send_encoded(self, data: bytes, fds: Sequence[int] = ()) -> None:
        """Send what `encode` made: the timed path prepares its bytes before the clock starts."""
        try:
            if fds:
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
                sent = self.sock.sendmsg([data], ancillary)
                data = data[sent:]
            if data:
                self.sock.sendall(data)
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def arrives(self, seconds: float) -> bool:
        """Wait until something can be received; False after the timeout.

        Raises:
            ChannelTimeout: the channel's deadline has passed.
        """
        if self._buffer or self._poll.poll(max(0.0, seconds) * 1000):
            return True
        if time.monotonic() > self.deadline:
            raise ChannelTimeout
        return False

    def receive(self, timeout_s: float | None = None) -> Message:
        """Wait for one message.

        Raises:
            ChannelClosed, ChannelTimeout, ProtocolViolation
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        fds: list[int] = []
        pid = self._fill(_LENGTH.size, deadline, fds)
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > MAX_MESSAGE:
            raise ProtocolViolation(f"a message of {length} bytes")
        end = _LENGTH.size + length
        self._fill(end, deadline, fds)
        data, self._buffer = self._buffer[_LENGTH.size : end], self._buffer[end:]
        try:
            body = _parsed(data)
        except (ValueError, RecursionError) as error:
            raise ProtocolViolation("a message that is not JSON") from error
        if not isinstance(body, dict):
            raise ProtocolViolation("a message that is not a JSON object")
        return Message(body, tuple(fds), pid)

    def _waits(self, deadline: float | None) -> bool:
        """Wait until something can be read; False when the deadline has passed."""
        if deadline is None:
            self._poll.poll()
            return True
        return bool(self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000))

    def _fill(self, count: int, deadline: float | None, fds: list[int]) -> int:
        """Have `count` bytes in the buffer; the sender's pid if it is asked for."""
        pid = 0
        while len(self._buffer) < count:
            try:
                piece, sender = self._read(count - len(self._buffer), fds)
            except BlockingIOError:
                if not self._waits(deadline):
                    raise ChannelTimeout from None
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from error
            if not piece:
                raise ChannelClosed("end of stream")
            self._buffer += piece
            pid = pid or sender
        return pid

    def _read(self, count: int, fds: list[int]) -> tuple[bytes, int]:
        if not (self._credentials or self._accept_fds):
            return self.sock.recv(max(count, _AHEAD), socket.MSG_DONTWAIT), 0
        space = _CREDENTIALS_SPACE + (_FDS_SPACE if self._accept_fds else 0)
        # Who takes descriptors is sent one message at a time; senders differ from message to message.
        most = count if self._credentials else max(count, _AHEAD)
        data, ancillary, _, _ = self.sock.recvmsg(most, space, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT)
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
                fds.append(fd)
            else:
                os.close(fd)


def _parsed(data: bytes) -> Any:
    """JSON whose texts can be encoded again: lone surrogates become question marks.

    Raises:
        ValueError, RecursionError: it is not JSON.
    """
    text = data.decode(errors="replace")
    body = json.loads(text, parse_int=_bounded)
    if "\\u" in text:  # only an escape can bring a surrogate
        body = json.loads(json.dumps(body, ensure_ascii=False).encode(errors="replace"))
    return body


def _bounded(digits: str) -> int:
    """An integer of a message: at most 64 bits, as no other has a meaning in a message.

    Raises:
        ValueError: it is larger.
    """
    number = int(digits) if len(digits) <= _MOST_DIGITS else 1 << 64
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueError("an integer of more than 64 bits")
    return number


def encode(body: Mapping[str, Any]) -> bytes:
    """A message's bytes: length and JSON."""
    data = json.dumps(body, separators=(",", ":")).encode()
    return _LENGTH.pack(len(data)) + data


def pair(*, credentials: bool = False) -> tuple[Channel, socket.socket]:
    """The referee's channel and the socket to hand to a worker."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(ours, credentials=credentials), theirs
