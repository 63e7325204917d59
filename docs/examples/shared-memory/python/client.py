"""Uses memory of the owner from Python: `python3 client.py PATH`. Needs nothing but Python and the CUDA driver.

The same as client.ts: take the handle, map the memory, read, write the answer.
SHOAL_CUDA_LIBRARY names another file than libcuda.so.1.
"""

import array
import ctypes
import json
import os
import socket
import struct
import sys

ELEMENTS = 1_000_000
POSIX_FD = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
READ_WRITE = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


cuda = ctypes.CDLL(os.environ.get("SHOAL_CUDA_LIBRARY") or "libcuda.so.1")
u64 = ctypes.c_uint64
size_t = ctypes.c_size_t
pointer = ctypes.c_void_p


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(text))
        raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()}")


def send(connection, text):
    payload = text.encode()
    connection.sendall(struct.pack("<II", len(payload), 0) + payload)


def receive(connection):
    """One message: 8 bytes of header, then the payload; descriptors come with the first byte."""
    data, descriptors = b"", []
    while len(data) < 8 or len(data) < 8 + struct.unpack_from("<I", data)[0]:
        wanted = 8 if len(data) < 8 else 8 + struct.unpack_from("<I", data)[0]
        part, received, _, _ = socket.recv_fds(connection, wanted - len(data), 64)
        if not part:
            raise ConnectionResetError("the owner closed the socket")
        data += part
        descriptors += received
    if struct.unpack_from("<I", data, 4)[0] != len(descriptors):
        raise ConnectionError("descriptors were lost on the way")
    return data[8:], descriptors


def use_primary_context(uuid):
    """Makes the primary context of the device with this UUID current, and returns the device's ordinal."""
    call("cuInit", 0)
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    for ordinal in range(count.value):
        device = ctypes.c_int()
        call("cuDeviceGet", ctypes.byref(device), ordinal)
        own = (ctypes.c_ubyte * 16)()
        call("cuDeviceGetUuid_v2", own, device)
        if uuid.replace("-", "") == "GPU" + bytes(own).hex():
            context = pointer()
            call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            call("cuCtxSetCurrent", context)
            return ordinal
    raise RuntimeError(f"this process does not see device {uuid}")


def main(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    payload, descriptors = receive(connection)
    facts = json.loads(payload)
    if facts["type"] != "posix-fd" or facts["content"] != "memory":
        raise RuntimeError(f"expected a descriptor of memory, got {facts}")
    byte_length = facts["byteLength"]
    ordinal = use_primary_context(facts["deviceUuid"])

    # The descriptor goes where C has a pointer, and is not needed once it was imported.
    handle = u64()
    call("cuMemImportFromShareableHandle", ctypes.byref(handle), pointer(descriptors[0]), POSIX_FD)
    os.close(descriptors[0])
    address = u64()
    call("cuMemAddressReserve", ctypes.byref(address), size_t(byte_length), size_t(0), u64(0), u64(0))
    call("cuMemMap", address, size_t(byte_length), size_t(0), handle, u64(0))
    access = Access(Location(DEVICE, ordinal), READ_WRITE)
    call("cuMemSetAccess", address, size_t(byte_length), ctypes.byref(access), size_t(1))
    print(f"importer {os.getpid()} (Python): mapped {byte_length} bytes at {address.value:#x}")
    send(connection, "mapped")

    values = array.array("I", bytes(4 * ELEMENTS))
    host = pointer(values.buffer_info()[0])
    call("cuMemcpyDtoH_v2", host, address, size_t(4 * ELEMENTS))
    if any(value != index for index, value in enumerate(values)):
        raise RuntimeError("the owner's values did not arrive")
    print(f"importer {os.getpid()} (Python): read, all {ELEMENTS} elements are right")
    for index in range(ELEMENTS):
        values[index] = index * 2 + 1
    call("cuMemcpyHtoD_v2", address, host, size_t(4 * ELEMENTS))
    call("cuCtxSynchronize")
    send(connection, "written")
    print(f"importer {os.getpid()} (Python): wrote the answer")

    call("cuMemUnmap", address, size_t(byte_length))
    call("cuMemRelease", handle)
    call("cuMemAddressFree", address, size_t(byte_length))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 client.py PATH")
    main(sys.argv[1])
