"""What goes over the socket: Shoal's description of memory, and the descriptor beside it."""

from __future__ import annotations

import ctypes
import json
import os
from ctypes import byref, c_int, c_uint64, c_void_p
from typing import Any, Callable

from ._array import DTYPES, ELEMENT_BYTES, DeviceArray, contiguous
from ._cuda import _LAZY_PEER_ACCESS, POSIX_DESCRIPTOR, Bytes64, CudaError, Driver, Event, driver, encode, handle64
from ._socket import DescriptorSocket

_DESCRIPTORS_IN_MESSAGE = 64


def receive(socket: DescriptorSocket, stream: int | None = None) -> DeviceArray:
    """The memory that `sendMemory` of Shoal, or `send`, sent next, opened; it is the caller's to close.

    What the sender has pending is waited for: by `stream` where one is named (a CUstream), else here.
    Raises TypeError and ValueError for another message, LookupError for memory of a device that this process does not see, CudaError,
    ConnectionError, TimeoutError.
    """
    data, descriptors = socket.receive()
    messages = 0

    def more() -> list[int]:
        nonlocal messages
        messages -= 1
        descriptors.extend(socket.receive()[1])
        return descriptors

    try:
        try:
            facts = json.loads(data)
        except ValueError:
            facts = None
        _checked(facts)
        messages = (len(facts["pieces"]) - 1) // _DESCRIPTORS_IN_MESSAGE if facts["way"] == "posix-fd" and "pieces" in facts else 0
        array = _open(facts, descriptors, more)
        try:
            if "event" in facts:
                with Event.open(facts["event"], array.device) as event:
                    event.synchronize() if stream is None else event.wait(stream)
        except BaseException:
            array.close()
            raise
        return array
    except Exception:
        # Those that still come belong to this memory, whatever was wrong with it.
        try:
            while messages > 0:
                more()
        except OSError:
            pass
        raise
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _checked(facts: Any) -> dict[str, Any]:
    def refuse(what: str, value: Any) -> ValueError:
        return ValueError(f"receive: message.{what}, not {value!r}")

    if not isinstance(facts, dict) or facts.get("type") != "shared-memory":
        raise TypeError(f"receive: message must be a description of shared memory, not {facts!r}")
    if facts.get("version") != 1:
        raise refuse("version must be 1, the only one known here", facts.get("version"))
    if facts.get("way") not in ("posix-fd", "ipc", "pool"):
        raise refuse("way must be 'posix-fd', 'ipc' or 'pool'", facts.get("way"))
    for key, least in (("byteLength", 1), ("byteOffset", 0)):
        if not _is_size(facts.get(key), least):
            raise refuse(f"{key} must be an integer from {least}", facts.get(key))
    bytes_needed = facts["byteOffset"] + facts["byteLength"]
    if facts["way"] == "posix-fd" and not _is_size(facts.get("allocationBytes"), bytes_needed):
        raise refuse(f"allocationBytes must be an integer from {bytes_needed}", facts.get("allocationBytes"))
    if facts["way"] == "posix-fd" and "pieces" in facts:
        pieces, all_bytes = facts["pieces"], facts["allocationBytes"]
        if not isinstance(pieces, list) or not all(_is_size(size, 1) for size in pieces) or sum(pieces) != all_bytes:
            raise refuse(f"pieces must be a list of integers from 1 that are {all_bytes} together", pieces)
    dtype = facts.setdefault("dtype", "u8")
    if dtype not in ELEMENT_BYTES:
        raise refuse("dtype must be the name of a dtype", dtype)
    shape = facts.setdefault("shape", [facts["byteLength"] // ELEMENT_BYTES[dtype]])
    strides = facts.setdefault("strides", None)
    if strides is None:
        strides = facts["strides"] = list(contiguous(shape)) if isinstance(shape, list) else None
    for key, sizes in (("shape", shape), ("strides", strides)):
        if not isinstance(sizes, list) or len(sizes) != len(shape) or not all(_is_size(size, 0) for size in sizes):
            raise refuse(f"{key} must be a list of integers from 0", sizes)
    last = 0 if 0 in shape else 1 + sum((extent - 1) * step for extent, step in zip(shape, strides))
    if last * ELEMENT_BYTES[dtype] > facts["byteLength"]:
        raise refuse(f"shape and strides must stay within {facts['byteLength']} bytes", (shape, strides))
    return facts


def _is_size(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**53


def _require(descriptors: list[int], needed: int) -> None:
    if len(descriptors) != needed:
        raise ValueError(f"receive: message must come with {needed} descriptors, not {len(descriptors)}")


def _open(facts: dict[str, Any], descriptors: list[int], more: Callable[[], list[int]]) -> DeviceArray:
    if facts["way"] != "posix-fd":
        _require(descriptors, 0 if facts["way"] == "ipc" else 1)
    cuda = driver()
    uuids = cuda.uuids()
    if facts.get("deviceUuid") not in uuids:
        raise LookupError(f"receive: the memory lies on device {facts.get('deviceUuid')}; this process sees {', '.join(uuids)}")
    device = uuids.index(facts["deviceUuid"])
    with cuda.on(device):
        start, close = _OPENERS[facts["way"]](cuda, facts, descriptors, device, more)
    return DeviceArray(
        start + facts["byteOffset"],
        facts["byteLength"],
        facts["dtype"],
        facts["shape"],
        facts["strides"],
        device,
        way=facts["way"],
        close=close,
        read_only=facts.get("readOnly") is True,
    )


_Opened = tuple  # the first address, and what gives it back
_More = Callable[[], list]  # takes the next message, and gives the descriptors that are there then


def _open_descriptors(cuda: Driver, facts: dict[str, Any], descriptors: list[int], device: int, more: _More) -> _Opened:
    """Maps what each descriptor stands for behind the one before, as they come."""
    length: int = facts["allocationBytes"]
    pieces: list[int] = facts.get("pieces", [length])
    start = cuda.reserve(length)
    at, mapped = start, 0
    try:
        for index, size in enumerate(pieces):
            if index % _DESCRIPTORS_IN_MESSAGE == 0:
                if index > 0:
                    more()
                _require(descriptors, min(len(pieces) - index, _DESCRIPTORS_IN_MESSAGE))
            descriptor = descriptors.pop(0)
            try:
                cuda.map(descriptor, at, size, device)
            finally:
                os.close(descriptor)
            at, mapped = at + size, mapped + 1
    except BaseException:
        cuda.unmap(start, pieces[:mapped], length)
        raise
    return start, lambda: cuda.unmap(start, pieces, length)


def _open_ipc(cuda: Driver, facts: dict[str, Any], _: list[int], device: int, more: _More) -> _Opened:
    address = c_uint64()
    cuda.call("cuIpcOpenMemHandle_v2", byref(address), handle64(facts.get("handle"), "receive"), _LAZY_PEER_ACCESS)

    def close() -> None:
        cuda.call("cuCtxSynchronize")
        cuda.call("cuIpcCloseMemHandle", address)

    return address.value, close


def _open_pool(cuda: Driver, facts: dict[str, Any], descriptors: list[int], device: int, more: _More) -> _Opened:
    pool, address = c_void_p(), c_uint64()
    pointer = handle64(facts.get("handle"), "receive")
    cuda.call("cuMemPoolImportFromShareableHandle", byref(pool), descriptors[0], POSIX_DESCRIPTOR, 0)
    try:
        cuda.call("cuMemPoolImportPointer", byref(address), pool, byref(pointer))
    except BaseException:
        cuda.call("cuMemPoolDestroy", pool)
        raise

    def close() -> None:
        cuda.call("cuMemFreeAsync", address, None)
        cuda.call("cuCtxSynchronize")
        cuda.call("cuMemPoolDestroy", pool)

    return address.value, close


_OPENERS: dict[str, Callable[[Driver, dict[str, Any], list[int], int, _More], _Opened]] = {
    "posix-fd": _open_descriptors,
    "ipc": _open_ipc,
    "pool": _open_pool,
}


def send(socket: DescriptorSocket, array: Any, event: Event | None = None) -> None:
    """Sends memory of a device, which `receiveMemory` of Shoal opens: any object with `__cuda_array_interface__`, as of CuPy, PyTorch or Numba.

    Work that is pending on it, as far as it says so, is waited for, unless an `event` is given that was recorded behind it. The memory must
    stay until the other side has said that it is done. Raises TypeError for what is no memory of a device, ValueError for memory that cannot
    leave its process, CudaError, ConnectionError.
    """
    interface = getattr(array, "__cuda_array_interface__", None)
    if not isinstance(interface, dict):
        raise TypeError(f"send: array must have __cuda_array_interface__, not {array!r}")
    dtype = DTYPES.get(interface["typestr"])
    if dtype is None:
        raise TypeError(f"send: array must have a type that Shoal has, not {interface['typestr']!r}")
    address, read_only = interface["data"]
    shape, element = tuple(interface["shape"]), ELEMENT_BYTES[dtype]
    byte_strides = interface.get("strides")
    strides = contiguous(shape) if byte_strides is None else tuple(step // element for step in byte_strides)
    if byte_strides is not None and any(step < 0 or step % element for step in byte_strides):
        raise ValueError(f"send: strides must be multiples of {element} bytes from 0, not {tuple(byte_strides)}")
    if 0 in shape:
        raise ValueError(f"send: array must have elements, not shape {shape}")
    byte_length = element * (1 + sum((extent - 1) * step for extent, step in zip(shape, strides)))
    cuda = driver()
    device = cuda.attribute(address, "device_ordinal")
    description: dict[str, Any] = {
        "type": "shared-memory",
        "version": 1,
        "deviceUuid": cuda.uuids()[device],
        "byteLength": byte_length,
        "dtype": dtype,
        "shape": shape,
        "strides": strides,
    }
    if read_only:
        description["readOnly"] = True
    with cuda.on(device):
        if event is not None:
            description["event"] = event.description
        elif interface.get("stream") is not None:
            cuda.call("cuStreamSynchronize", interface["stream"])
        facts, sources = _export(cuda, address, byte_length)
        message = json.dumps({**description, **facts}).encode()
        for start in range(0, max(len(sources), 1), _DESCRIPTORS_IN_MESSAGE):
            descriptors: list[int] = []
            try:
                for export in sources[start : start + _DESCRIPTORS_IN_MESSAGE]:
                    descriptors.append(export())
                socket.send(message, descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            message = b'{"type":"shared-memory-pieces"}'


def _export(cuda: Driver, address: int, byte_length: int) -> tuple[dict[str, Any], list[Callable[[], int]]]:
    """What tells of memory, and what makes each descriptor beside it."""

    def offset(start: int, size: int) -> int:
        if address + byte_length > start + size:
            raise ValueError("send: array must lie in one allocation; send parts of it")
        return address - start

    def exported(name: str, handle: Any) -> int:
        descriptor = c_int()
        cuda.call(name, ctypes.addressof(descriptor), handle, POSIX_DESCRIPTOR, 0)
        return descriptor.value

    def exported_piece(start: int) -> int:
        handle = c_uint64()
        cuda.call("cuMemRetainAllocationHandle", byref(handle), start)
        try:
            return exported("cuMemExportToShareableHandle", handle)
        finally:
            cuda.call("cuMemRelease", handle)

    if cuda.attribute(address, "is_managed"):
        raise ValueError("send: managed memory cannot leave its process")
    is_descriptor = cuda.attribute(address, "allowed_handle_types") & POSIX_DESCRIPTOR != 0
    pool = _pool_of(cuda, address)
    data = Bytes64()
    if pool:
        if not is_descriptor:
            raise ValueError("send: the pool of the memory was not made for a descriptor")
        start = cuda.attribute(address, "range_start")
        byte_offset = offset(start, cuda.attribute(address, "range_size"))
        cuda.call("cuMemPoolExportPointer", byref(data), start)
        facts = {"way": "pool", "byteOffset": byte_offset, "handle": encode(data)}
        return facts, [lambda: exported("cuMemPoolExportToShareableHandle", pool)]
    if cuda.attribute(address, "is_legacy_ipc_capable"):
        byte_offset = offset(cuda.attribute(address, "range_start"), cuda.attribute(address, "range_size"))
        cuda.call("cuIpcGetMemHandle", byref(data), address)
        return {"way": "ipc", "byteOffset": byte_offset, "handle": encode(data)}, []
    if not is_descriptor:
        raise ValueError("send: the memory was not made for a descriptor")
    starts = [cuda.attribute(address, "mapping_base")]
    pieces = [cuda.attribute(address, "mapping_size")]
    while (end := starts[-1] + pieces[-1]) < address + byte_length:
        if cuda.attribute(end, "allowed_handle_types") & POSIX_DESCRIPTOR == 0:
            raise ValueError("send: a part of the memory was not made for a descriptor")
        starts.append(end)
        pieces.append(cuda.attribute(end, "mapping_size"))
    facts = {"way": "posix-fd", "byteOffset": address - starts[0], "allocationBytes": sum(pieces)}
    if len(pieces) > 1:
        facts["pieces"] = pieces
    return facts, [lambda start=start: exported_piece(start) for start in starts]


def _pool_of(cuda: Driver, address: int) -> int:
    try:
        return cuda.attribute(address, "pool")
    except CudaError:
        # Drivers that know no pools of this memory refuse the question.
        return 0
