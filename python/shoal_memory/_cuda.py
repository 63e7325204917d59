"""The functions of the CUDA driver that shared memory needs, by ctypes."""

from __future__ import annotations

import base64
import ctypes
import os
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any, Iterator, Sequence

POSIX_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_LAZY_PEER_ACCESS = 1
_INTERPROCESS = 4 | 2  # CU_EVENT_INTERPROCESS, CU_EVENT_DISABLE_TIMING
_DEVICE, _READ_WRITE = 1, 3

# CUpointer_attribute, and how each is read.
ATTRIBUTES = {
    "is_managed": (8, c_int),
    "device_ordinal": (9, c_int),
    "is_legacy_ipc_capable": (10, c_int),
    "range_start": (11, c_uint64),
    "range_size": (12, c_size_t),
    "allowed_handle_types": (14, c_uint64),
    "pool": (17, c_uint64),
    "mapping_size": (18, c_size_t),
    "mapping_base": (19, c_uint64),
}


class _Access(Structure):
    """CUmemAccessDesc"""

    _fields_ = [("location_type", c_int), ("location_id", c_int), ("flags", c_int)]


class Bytes64(Structure):
    """CUipcMemHandle, CUipcEventHandle, CUmemPoolPtrExportData"""

    _fields_ = [("bytes", c_ubyte * 64)]


class CudaError(RuntimeError):
    """A function of the driver failed: `api`, `status`, and `code`, its name in C."""

    def __init__(self, api: str, status: int, code: str) -> None:
        super().__init__(f"{api}: {code} ({status})")
        self.api, self.status, self.code = api, status, code


_FUNCTIONS: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetCount": [POINTER(c_int)],
    "cuDeviceGetUuid_v2": [POINTER(c_ubyte * 16), c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [POINTER(c_void_p)],
    "cuCtxSynchronize": [],
    "cuStreamSynchronize": [c_void_p],
    "cuStreamWaitEvent": [c_void_p, c_void_p, c_uint],
    "cuPointerGetAttribute": [c_void_p, c_int, c_uint64],
    "cuMemAlloc_v2": [POINTER(c_uint64), c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemFreeAsync": [c_uint64, c_void_p],
    "cuMemcpyDtoH_v2": [c_void_p, c_uint64, c_size_t],
    "cuMemcpyHtoD_v2": [c_uint64, c_void_p, c_size_t],
    "cuIpcGetMemHandle": [POINTER(Bytes64), c_uint64],
    "cuIpcOpenMemHandle_v2": [POINTER(c_uint64), Bytes64, c_uint],
    "cuIpcCloseMemHandle": [c_uint64],
    "cuIpcGetEventHandle": [POINTER(Bytes64), c_void_p],
    "cuIpcOpenEventHandle": [POINTER(c_void_p), Bytes64],
    "cuEventCreate": [POINTER(c_void_p), c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventDestroy_v2": [c_void_p],
    "cuMemRetainAllocationHandle": [POINTER(c_uint64), c_void_p],
    "cuMemExportToShareableHandle": [c_void_p, c_uint64, c_int, c_uint64],
    "cuMemImportFromShareableHandle": [POINTER(c_uint64), c_void_p, c_int],
    "cuMemRelease": [c_uint64],
    "cuMemAddressReserve": [POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_uint64],
    "cuMemAddressFree": [c_uint64, c_size_t],
    "cuMemMap": [c_uint64, c_size_t, c_size_t, c_uint64, c_uint64],
    "cuMemUnmap": [c_uint64, c_size_t],
    "cuMemSetAccess": [c_uint64, c_size_t, POINTER(_Access), c_size_t],
    "cuMemPoolExportToShareableHandle": [c_void_p, c_void_p, c_int, c_uint64],
    "cuMemPoolExportPointer": [POINTER(Bytes64), c_uint64],
    "cuMemPoolImportFromShareableHandle": [POINTER(c_void_p), c_void_p, c_int, c_uint64],
    "cuMemPoolImportPointer": [POINTER(c_uint64), c_void_p, POINTER(Bytes64)],
    "cuMemPoolDestroy": [c_void_p],
}


class Driver:
    """The driver, loaded at its first use. SHOAL_CUDA_LIBRARY names another file than libcuda.so.1."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ.get("SHOAL_CUDA_LIBRARY") or "libcuda.so.1")
        self._contexts: dict[int, c_void_p] = {}
        for name, arguments in _FUNCTIONS.items():
            function = getattr(self._library, name)
            function.argtypes, function.restype = arguments, c_int
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Raises CudaError."""
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            text = c_char_p()
            self._library.cuGetErrorName(status, byref(text))
            raise CudaError(name, status, (text.value or b"unknown").decode())

    def uuids(self) -> list[str]:
        """Of the devices that this process sees, as nvidia-smi writes them."""
        count, device, uuid = c_int(), c_int(), (c_ubyte * 16)()
        self.call("cuDeviceGetCount", byref(count))
        found = []
        for ordinal in range(count.value):
            self.call("cuDeviceGet", byref(device), ordinal)
            self.call("cuDeviceGetUuid_v2", byref(uuid), device)
            text = bytes(uuid).hex()
            found.append(f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")
        return found

    @contextmanager
    def on(self, ordinal: int) -> Iterator[Driver]:
        """The primary context of a device is current within; then what was before."""
        context = self._contexts.get(ordinal)
        if context is None:
            device, context = c_int(), c_void_p()
            self.call("cuDeviceGet", byref(device), ordinal)
            self.call("cuDevicePrimaryCtxRetain", byref(context), device)
            self._contexts[ordinal] = context
        self.call("cuCtxPushCurrent_v2", context)
        try:
            yield self
        finally:
            self.call("cuCtxPopCurrent_v2", byref(c_void_p()))

    def attribute(self, address: int, name: str) -> int:
        """What the driver knows about an address."""
        number, kind = ATTRIBUTES[name]
        value = kind()
        self.call("cuPointerGetAttribute", ctypes.addressof(value), number, address)
        return int(value.value)

    def reserve(self, length: int) -> int:
        """Addresses without memory."""
        address = c_uint64()
        self.call("cuMemAddressReserve", byref(address), length, 0, 0, 0)
        return address.value

    def map(self, descriptor: int, address: int, length: int, ordinal: int) -> None:
        """Maps all memory that a descriptor stands for, and keeps nothing but the mapping."""
        handle = c_uint64()
        self.call("cuMemImportFromShareableHandle", byref(handle), descriptor, POSIX_DESCRIPTOR)
        try:
            self.call("cuMemMap", address, length, 0, handle, 0)
            try:
                access = _Access(_DEVICE, ordinal, _READ_WRITE)
                self.call("cuMemSetAccess", address, length, byref(access), 1)
            except BaseException:
                self.call("cuMemUnmap", address, length)
                raise
        finally:
            self.call("cuMemRelease", handle)

    def unmap(self, address: int, lengths: Sequence[int], reserved: int) -> None:
        """Unmaps pieces that lie one behind the other, and frees the addresses. Waits first, as the driver does not."""
        self.call("cuCtxSynchronize")
        at = address
        for length in lengths:
            self.call("cuMemUnmap", at, length)
            at += length
        self.call("cuMemAddressFree", address, reserved)


_driver: Driver | None = None


def driver() -> Driver:
    """The one of this process. Raises OSError where there is none."""
    global _driver
    if _driver is None:
        _driver = Driver()
    return _driver


class Event:
    """An event that another process knows too: recorded on one side, waited for on the other. Close it when both are done."""

    def __init__(self, handle: int, device: int) -> None:
        self._handle: int | None = handle
        self.device = device

    @classmethod
    def create(cls, device: int = 0) -> Event:
        """Makes one; `description` goes to the other process."""
        event = c_void_p()
        with driver().on(device) as cuda:
            cuda.call("cuEventCreate", byref(event), _INTERPROCESS)
        return cls(event.value or 0, device)

    @classmethod
    def open(cls, description: dict[str, str], device: int = 0) -> Event:
        """Opens what `ipcEventHandle` of Shoal gave, or `description`."""
        if not isinstance(description, dict) or description.get("type") != "ipc-event":
            raise TypeError(f"Event.open: description must be one of an IPC event, not {description!r}")
        event = c_void_p()
        with driver().on(device) as cuda:
            cuda.call("cuIpcOpenEventHandle", byref(event), handle64(description.get("handle"), "Event.open"))
        return cls(event.value or 0, device)

    @property
    def handle(self) -> int:
        """The CUevent."""
        if self._handle is None:
            raise ValueError("Event: it is closed")
        return self._handle

    @property
    def description(self) -> dict[str, str]:
        """What `openIpcEvent` of Shoal takes: plain data for JSON."""
        data = Bytes64()
        with driver().on(self.device) as cuda:
            cuda.call("cuIpcGetEventHandle", byref(data), self.handle)
        return {"type": "ipc-event", "handle": encode(data)}

    def record(self, stream: int = 0) -> None:
        """Marks the end of what is queued on a stream so far."""
        with driver().on(self.device) as cuda:
            cuda.call("cuEventRecord", self.handle, stream)

    def wait(self, stream: int = 0) -> None:
        """Has a stream wait for it."""
        with driver().on(self.device) as cuda:
            cuda.call("cuStreamWaitEvent", stream, self.handle, 0)

    def synchronize(self) -> None:
        """Blocks until it has come."""
        with driver().on(self.device) as cuda:
            cuda.call("cuEventSynchronize", self.handle)

    def close(self) -> None:
        """Destroys it. Again does nothing."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        with driver().on(self.device) as cuda:
            cuda.call("cuEventDestroy_v2", handle)

    def __enter__(self) -> Event:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def encode(data: Bytes64) -> str:
    """Base64, as descriptions have it."""
    return base64.b64encode(bytes(data.bytes)).decode()


def handle64(text: Any, api: str) -> Bytes64:
    """The 64 bytes of a handle. Raises TypeError, ValueError."""
    if not isinstance(text, str):
        raise TypeError(f"{api}: handle must be base64 text, not {text!r}")
    data = base64.b64decode(text, validate=True)
    if len(data) != 64:
        raise ValueError(f"{api}: handle must have 64 bytes, not {len(data)}")
    return Bytes64.from_buffer_copy(data)
