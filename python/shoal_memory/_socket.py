"""The other end of Shoal's DescriptorSocket."""

from __future__ import annotations

import os
import socket
import struct
from typing import Iterable

_HEADER = struct.Struct("<II")
_MOST_BYTES = 1 << 20
_MOST_DESCRIPTORS = 64


class DescriptorSocket:
    """A Unix socket whose messages arrive whole, with file descriptors beside them."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    def connect(cls, path: str, timeout: float | None = None) -> DescriptorSocket:
        """Connects to a `DescriptorServer`. A path that starts with NUL is in the abstract name space."""
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.settimeout(timeout)
            connected.connect(path)
        except BaseException:
            connected.close()
            raise
        return cls(connected)

    @classmethod
    def adopt(cls, descriptor: int) -> DescriptorSocket:
        """Takes over a socket that the parent process handed on."""
        adopted = socket.socket(fileno=descriptor)
        # Node's do not block, and Python takes those that it is given for such that do.
        adopted.setblocking(True)
        return cls(adopted)

    def settimeout(self, seconds: float | None) -> None:
        """The limit of each wait from now on; what takes longer raises `TimeoutError`."""
        self._socket.settimeout(seconds)

    def send(self, data: bytes = b"", descriptors: Iterable[int] = ()) -> None:
        """Sends one message. The descriptors stay the caller's to close."""
        listed = list(descriptors)
        frame = _HEADER.pack(len(data), len(listed)) + data
        sent = socket.send_fds(self._socket, [frame], listed)
        if sent < len(frame):
            self._socket.sendall(frame[sent:])

    def receive(self) -> tuple[bytes, list[int]]:
        """The next message, and its descriptors, which are the caller's to close.

        Raises ConnectionResetError when the other end is closed, ConnectionError for what is no message, TimeoutError.
        """
        descriptors: list[int] = []
        try:
            length, count = _HEADER.unpack(self._read(_HEADER.size, descriptors))
            if length > _MOST_BYTES or count != len(descriptors):
                raise ConnectionError(f"no such message: {length} bytes, {count} descriptors, {len(descriptors)} came")
            return self._read(length, descriptors), descriptors
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise

    def close(self) -> None:
        """Closes it."""
        self._socket.close()

    def __enter__(self) -> DescriptorSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, length: int, descriptors: list[int]) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            flags = socket.MSG_CMSG_CLOEXEC
            part, received, result, _ = socket.recv_fds(self._socket, length - len(parts), _MOST_DESCRIPTORS, flags)
            descriptors.extend(received)
            if result & socket.MSG_CTRUNC:
                raise ConnectionError("more descriptors came than there is room for")
            if not part:
                raise ConnectionResetError("the other end is closed")
            parts += part
        return bytes(parts)
