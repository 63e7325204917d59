"""Memory of a device as an array that CuPy, PyTorch and Numba take."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint64
from typing import Any, Callable, Sequence

from . import _dlpack
from ._cuda import driver

_TYPESTR = {
    **{f"{kind}{8 * size}": f"{'|' if size == 1 else '<'}{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"f{8 * size}": f"<f{size}" for size in (2, 4, 8)},
    "complex64": "<c8",
    "complex128": "<c16",
    "bool": "|b1",
}
DTYPES = {**{text: name for name, text in _TYPESTR.items()}}
ELEMENT_BYTES = {name: int(text[2:]) for name, text in _TYPESTR.items()}
ELEMENT_BYTES.update(bf16=2, f8e4m3=1, f8e5m2=1)


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Steps of elements without gaps, in elements."""
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return tuple(reversed(steps))


class DeviceArray:
    """Memory of a device, with `__cuda_array_interface__` and `__dlpack__`. `close()` gives it back; so does the end of a `with`.

    Attributes: `address`, `byte_length`, `dtype` (Shoal's name, such as "f32"), `shape`, `strides` (in elements), `device`,
    `read_only`, and `way`, how it came ("posix-fd", "ipc", "pool"; "own" for memory of this process).
    """

    def __init__(
        self,
        address: int,
        byte_length: int,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int],
        device: int,
        *,
        way: str,
        close: Callable[[], None],
        read_only: bool = False,
    ) -> None:
        self._address = address
        self.byte_length, self.dtype, self.device, self.way, self.read_only = byte_length, dtype, device, way, read_only
        self.shape, self.strides = tuple(shape), tuple(strides)
        self._close: Callable[[], None] | None = close

    @property
    def address(self) -> int:
        """Of the first element. Raises ValueError once it is closed."""
        if self._close is None:
            raise ValueError("DeviceArray: it is closed")
        return self._address

    @property
    def closed(self) -> bool:
        """Whether the memory was given back."""
        return self._close is None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3. Nothing is pending: `receive` has waited. Types that NumPy has not, as bf16, have `__dlpack__` alone."""
        if self.dtype not in _TYPESTR:
            raise AttributeError(f"an array of {self.dtype} has no __cuda_array_interface__, but __dlpack__")
        element = ELEMENT_BYTES[self.dtype]
        is_plain = self.strides == contiguous(self.shape)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": _TYPESTR[self.dtype],
            "data": (self.address, self.read_only),
            "strides": None if is_plain else tuple(step * element for step in self.strides),
            "stream": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_dlpack.CUDA, self.device)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule. Nothing is pending, so that no stream has to wait. Raises BufferError for what cannot be."""
        versioned = max_version is not None and max_version[0] >= 1
        if copy is True:
            raise BufferError("DeviceArray: it is not copied")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"DeviceArray: it lies on {self.__dlpack_device__()}, not on {dl_device}")
        if self.read_only and not versioned:
            raise BufferError("DeviceArray: read-only memory needs max_version=(1, 0)")
        return _dlpack.capsule(self, self.shape, self.strides, versioned)

    def read(self) -> bytes:
        """All bytes, from the first element to the end of the last; waits."""
        data = ctypes.create_string_buffer(self.byte_length)
        with driver().on(self.device) as cuda:
            cuda.call("cuMemcpyDtoH_v2", data, self.address, self.byte_length)
        return data.raw

    def write(self, data: bytes) -> None:
        """Writes all bytes; waits. Raises ValueError for another number of them, or for read-only memory."""
        if self.read_only:
            raise ValueError("DeviceArray.write: it is read-only")
        if len(data) != self.byte_length:
            raise ValueError(f"DeviceArray.write: data must have {self.byte_length} bytes, not {len(data)}")
        with driver().on(self.device) as cuda:
            cuda.call("cuMemcpyHtoD_v2", self.address, bytes(data), len(data))
            cuda.call("cuCtxSynchronize")

    def close(self) -> None:
        """Gives the memory back, once the work of this process has ended. Arrays that others made of it must not be used any more."""
        if self._close is None:
            return
        close, self._close = self._close, None
        with driver().on(self.device):
            close()

    def __enter__(self) -> DeviceArray:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"DeviceArray({self.dtype}, {list(self.shape)}, device {self.device}, {self.way}{state})"


def allocate(shape: Sequence[int] | int, dtype: str = "f32", device: int = 0) -> DeviceArray:
    """Memory of this process, with whatever was there before. Raises TypeError, ValueError, CudaError."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if dtype not in ELEMENT_BYTES:
        raise ValueError(f"allocate: dtype must be one of {', '.join(ELEMENT_BYTES)}, not {dtype!r}")
    if not all(isinstance(extent, int) and extent > 0 for extent in extents):
        raise ValueError(f"allocate: shape must have extents above 0, not {shape!r}")
    byte_length = ELEMENT_BYTES[dtype]
    for extent in extents:
        byte_length *= extent
    address = c_uint64()
    with driver().on(device) as cuda:
        cuda.call("cuMemAlloc_v2", byref(address), byte_length)
    start = address.value
    close = lambda: driver().call("cuMemFree_v2", start)  # noqa: E731
    return DeviceArray(start, byte_length, dtype, extents, contiguous(extents), device, way="own", close=close)
