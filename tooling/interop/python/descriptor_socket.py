"""The other end of Shoal's DescriptorSocket, in plain Python.

A message is

    4 bytes    length of the data, little-endian
    4 bytes    number of descriptors, little-endian
    …          the data

and the descriptors travel with its first bytes (SCM_RIGHTS). Shoal's sendHandle() sends one such message: the handle
as JSON, and its descriptor.
"""

import json
import os
import socket
import struct

HEADER = struct.Struct("<II")
MOST_BYTES = 1 << 20
MOST_DESCRIPTORS = 64


class DescriptorSocket:
    def __init__(self, connected):
        self.socket = connected

    @classmethod
    def connect(cls, path):
        """Connects to a DescriptorServer of Node. A path that starts with NUL is in the abstract name space."""
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connected.connect(path)
        return cls(connected)

    @classmethod
    def adopt(cls, descriptor):
        """Takes over a socket that was inherited from the parent process."""
        return cls(socket.socket(fileno=descriptor))

    def send(self, data=b"", descriptors=()):
        frame = HEADER.pack(len(data), len(descriptors)) + data
        sent = socket.send_fds(self.socket, [frame], list(descriptors))
        # An empty send would fail if the other side received everything and closed.
        if sent < len(frame):
            self.socket.sendall(frame[sent:])

    def receive(self):
        """Returns the next message: its data and its descriptors, which the caller must close."""
        descriptors = []
        try:
            length, count = HEADER.unpack(self._read(HEADER.size, descriptors))
            if length > MOST_BYTES or count != len(descriptors):
                raise ConnectionError(f"no such message: {length} bytes, {count} descriptors, {len(descriptors)} came")
            return self._read(length, descriptors), descriptors
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise

    def send_json(self, value, descriptors=()):
        self.send(json.dumps(value).encode(), descriptors)

    def receive_json(self):
        data, descriptors = self.receive()
        return json.loads(data), descriptors

    def send_handle(self, descriptor, content, byte_length, device_uuid):
        """Sends what Shoal's receiveHandle() expects. The caller must still close the descriptor."""
        facts = {"type": "posix-fd", "content": content, "byteLength": byte_length, "deviceUuid": device_uuid}
        self.send_json(facts, [descriptor])

    def receive_handle(self, content):
        """Receives what Shoal's sendHandle() sent: the descriptor, which the caller must close, and its facts."""

        facts, descriptors = self.receive_json()
        if facts.get("type") == "posix-fd" and facts.get("content") == content and len(descriptors) == 1:
            return descriptors[0], facts
        for descriptor in descriptors:
            os.close(descriptor)
        raise ValueError(f"a descriptor of {content} was expected, {facts} came with {len(descriptors)} descriptors")

    def close(self):
        self.socket.close()

    def _read(self, length, descriptors):
        parts = []
        while length > 0:
            part, received, flags, _ = socket.recv_fds(self.socket, length, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
            descriptors.extend(received)
            if flags & socket.MSG_CTRUNC:
                raise ConnectionError("more descriptors came than there is room for")
            if not part:
                raise ConnectionResetError("the other end is closed")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)
