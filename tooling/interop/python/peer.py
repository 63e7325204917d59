"""The Python side of the exchange: answers the requests of Node over a Unix socket.

    peer.py SOCKET LIBRARY LIBCUDA

SOCKET is the path of a DescriptorServer of Node. LIBRARY is libcuda, cuda.bindings, CuPy or PyTorch. LIBCUDA is the file
of the CUDA driver. Requests and answers are JSON objects. If a request fails, its answer is {"error": …}.

    import ipc|descriptor|pool    takes memory of Node, compares it with the sent sha256, and inverts every byte
    export ipc|descriptor|pool    makes memory of random bytes and shares it with Node
    check                         compares exported memory with the inverse of its first content
    release                       frees the imported or exported memory
"""

import base64
import hashlib
import os
import sys
import traceback

from descriptor_socket import DescriptorSocket
from libcuda import INVERTED
from libraries import LIBRARIES


class Peer:
    def __init__(self, socket, library):
        self.socket = socket
        self.library = library
        self.releases = []
        self.exported = None

    def answer(self, request):
        command = request["command"]
        if command == "import":
            return getattr(self, f"import_{request['kind']}")(request)
        if command == "export":
            return getattr(self, f"export_{request['kind']}")(request["bytes"])
        if command == "check":
            return self.check()
        if command == "release":
            return self.release()
        raise ValueError(f"there is no command {command}")

    # Memory of Node

    def import_ipc(self, request):
        handle = request["handle"]
        start = self.library.ipc_open(base64.b64decode(handle["handle"]))
        self.releases.append(lambda: self.library.ipc_close(start))
        return self.use(start + handle["byteOffset"], handle["length"], request["sha256"])

    def import_descriptor(self, request):
        descriptor, facts = self.socket.receive_handle("memory")
        self.expect_device(facts)
        try:
            memory = self.library.import_memory(descriptor)
        finally:
            os.close(descriptor)
        length = facts["byteLength"]
        address = self.library.map(memory, length)
        self.releases.append(lambda: self.library.unmap(address, length))
        return self.use(address, length, request["sha256"])

    def import_pool(self, request):
        descriptor, facts = self.socket.receive_handle("pool")
        self.expect_device(facts)
        try:
            pool = self.library.import_pool(descriptor)
        finally:
            os.close(descriptor)
        self.releases.append(lambda: self.library.destroy_pool(pool))
        pointer = request["pointer"]
        address = self.library.import_pointer(pool, base64.b64decode(pointer["data"]))
        self.releases.append(lambda: self.library.free_to_pool(address))
        return self.use(address, pointer["length"], request["sha256"])

    def use(self, address, length, expected):
        found = sha256(self.library.read(address, length))
        if found != expected:
            raise ValueError(f"{length} bytes were read that Node has not written: {found}, not {expected}")
        self.library.invert(address, length)
        return {"sha256": found}

    def expect_device(self, facts):
        if facts["deviceUuid"] != self.library.uuid():
            raise ValueError(f"the memory lies on {facts['deviceUuid']}, this process uses {self.library.uuid()}")

    # Memory for Node

    def export_ipc(self, length):
        address = self.library.allocate(length)
        self.releases.append(lambda: self.library.free(address))
        start = self.library.allocation_of(address)
        handle = {
            "type": "ipc-memory",
            "handle": base64.b64encode(self.library.ipc_handle(start)).decode(),
            "byteOffset": address - start,
            "dtype": "u8",
            "length": length,
            "deviceUuid": self.library.uuid(),
        }
        return {"handle": handle, "sha256": self.fill(address, length)}

    def export_descriptor(self, length):
        granularity = self.library.granularity()
        length = -(-length // granularity) * granularity
        memory = self.library.create(length)
        descriptor = self.library.export_memory(memory)
        try:
            address = self.library.map(memory, length)
            self.releases.append(lambda: self.library.unmap(address, length))
            checksum = self.fill(address, length)
            self.socket.send_json({"sha256": checksum})
            self.socket.send_handle(descriptor, "memory", length, self.library.uuid())
        finally:
            os.close(descriptor)

    def export_pool(self, length):
        pool = self.library.create_pool()
        self.releases.append(lambda: self.library.destroy_pool(pool))
        address = self.library.allocate_from(pool, length)
        self.releases.append(lambda: self.library.free_to_pool(address))
        # The driver exports pointers only from an exported pool.
        descriptor = self.library.export_pool(pool)
        try:
            data = base64.b64encode(self.library.export_pointer(address)).decode()
            pointer = {"type": "pool-pointer", "data": data, "dtype": "u8", "length": length}
            self.socket.send_json({"pointer": pointer, "sha256": self.fill(address, length)})
            self.socket.send_handle(descriptor, "pool", 0, self.library.uuid())
        finally:
            os.close(descriptor)

    def fill(self, address, length):
        data = os.urandom(length)
        self.library.write(address, data)
        self.exported = address, data
        return sha256(data)

    def check(self):
        address, data = self.exported
        found = self.library.read(address, len(data))
        if found != data.translate(INVERTED):
            wrong = sum(a != b for a, b in zip(found, data.translate(INVERTED)))
            raise ValueError(f"{wrong} of {len(data)} bytes are not what Node was to write")
        return {"sha256": sha256(found)}

    def release(self):
        self.exported = None
        while self.releases:
            self.releases.pop()()
        return {}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def main():
    path, name, libcuda = sys.argv[1:]
    socket = DescriptorSocket.connect(path)
    try:
        library = LIBRARIES[name](libcuda)
    except Exception as error:
        missing = f"the Python package {error.name} is missing: " if isinstance(error, ModuleNotFoundError) else ""
        socket.send_json({"error": f"{missing}{type(error).__name__}: {error}"})
        return
    socket.send_json({"library": name, "version": library.version(), "python": sys.version.split()[0]})
    peer = Peer(socket, library)
    while True:
        try:
            request, _ = socket.receive_json()
        except ConnectionResetError:
            return
        try:
            answer = peer.answer(request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        # An export has already answered, because its descriptor goes with the answer.

        if answer is not None:
            socket.send_json(answer)


if __name__ == "__main__":
    main()
