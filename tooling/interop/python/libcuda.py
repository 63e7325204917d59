"""The functions of the CUDA driver that shared memory needs, through ctypes, without any other package."""

import ctypes
from ctypes import POINTER, Structure, byref, c_char, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_ushort, c_void_p

POSIX_FILE_DESCRIPTOR = 1
PINNED = 1
DEVICE = 1
READ_WRITE = 3
LAZY_PEER_ACCESS = 1
# Maps each byte to 255 minus it, for bytes.translate.
INVERTED = bytes(range(255, -1, -1))


class Location(Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class AllocationFlags(Structure):
    _fields_ = [
        ("compression_type", c_ubyte),
        ("gpu_direct_rdma_capable", c_ubyte),
        ("usage", c_ushort),
        ("reserved", c_ubyte * 4),
    ]


class AllocationProperties(Structure):
    """CUmemAllocationProp"""

    _fields_ = [
        ("type", c_int),
        ("requested_handle_types", c_int),
        ("location", Location),
        ("win32_metadata", c_void_p),
        ("flags", AllocationFlags),
    ]


class AccessDescription(Structure):
    """CUmemAccessDesc"""

    _fields_ = [("location", Location), ("flags", c_int)]


class PoolProperties(Structure):
    """CUmemPoolProps"""

    _fields_ = [
        ("allocation_type", c_int),
        ("handle_types", c_int),
        ("location", Location),
        ("win32_attributes", c_void_p),
        ("maximum_size", c_size_t),
        ("usage", c_ushort),
        ("reserved", c_ubyte * 54),
    ]


class Bytes64(Structure):
    """CUipcMemHandle, CUmemPoolPtrExportData"""

    _fields_ = [("bytes", c_ubyte * 64)]


class Bytes16(Structure):
    """CUuuid"""

    _fields_ = [("bytes", c_ubyte * 16)]


class CudaError(RuntimeError):
    """A function of the driver failed."""


Address = c_uint64
Handle = c_uint64

FUNCTIONS = {
    "cuInit": [c_uint],
    "cuDeviceGet": [POINTER(c_int), c_int],
    "cuDeviceGetUuid": [POINTER(Bytes16), c_int],
    "cuDevicePrimaryCtxRetain": [POINTER(c_void_p), c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuCtxSynchronize": [],
    "cuGetErrorName": [c_int, POINTER(ctypes.c_char_p)],
    "cuMemAlloc_v2": [POINTER(Address), c_size_t],
    "cuMemFree_v2": [Address],
    "cuMemcpyDtoH_v2": [c_void_p, Address, c_size_t],
    "cuMemcpyHtoD_v2": [Address, c_void_p, c_size_t],
    "cuMemGetAddressRange_v2": [POINTER(Address), POINTER(c_size_t), Address],
    "cuIpcGetMemHandle": [POINTER(Bytes64), Address],
    "cuIpcOpenMemHandle_v2": [POINTER(Address), Bytes64, c_uint],
    "cuIpcCloseMemHandle": [Address],
    "cuMemGetAllocationGranularity": [POINTER(c_size_t), POINTER(AllocationProperties), c_int],
    "cuMemCreate": [POINTER(Handle), c_size_t, POINTER(AllocationProperties), c_uint64],
    "cuMemRelease": [Handle],
    "cuMemAddressReserve": [POINTER(Address), c_size_t, c_size_t, Address, c_uint64],
    "cuMemAddressFree": [Address, c_size_t],
    "cuMemMap": [Address, c_size_t, c_size_t, Handle, c_uint64],
    "cuMemUnmap": [Address, c_size_t],
    "cuMemSetAccess": [Address, c_size_t, POINTER(AccessDescription), c_size_t],
    "cuMemExportToShareableHandle": [c_void_p, Handle, c_int, c_uint64],
    "cuMemImportFromShareableHandle": [POINTER(Handle), c_void_p, c_int],
    "cuMemPoolCreate": [POINTER(c_void_p), POINTER(PoolProperties)],
    "cuMemPoolDestroy": [c_void_p],
    "cuMemPoolExportToShareableHandle": [c_void_p, c_void_p, c_int, c_uint64],
    "cuMemPoolImportFromShareableHandle": [POINTER(c_void_p), c_void_p, c_int, c_uint64],
    "cuMemPoolExportPointer": [POINTER(Bytes64), Address],
    "cuMemPoolImportPointer": [POINTER(Address), c_void_p, POINTER(Bytes64)],
    "cuMemAllocFromPoolAsync": [POINTER(Address), c_size_t, c_void_p, c_void_p],
    "cuMemFreeAsync": [Address, c_void_p],
}


class LibCuda:
    """Device 0 and its primary context, current on this thread."""

    name = "libcuda"

    def __init__(self, path="libcuda.so.1"):
        self.library = ctypes.CDLL(path)
        for name, arguments in FUNCTIONS.items():
            function = getattr(self.library, name)
            function.argtypes = arguments
            function.restype = c_int
        self._call("cuInit", 0)
        device, context = c_int(), c_void_p()
        self._call("cuDeviceGet", byref(device), 0)
        self.device = device.value
        self._call("cuDevicePrimaryCtxRetain", byref(context), self.device)
        self._call("cuCtxSetCurrent", context)

    def version(self):
        return None

    def uuid(self):
        """Returns the UUID in the format of nvidia-smi and Shoal."""
        uuid = Bytes16()
        self._call("cuDeviceGetUuid", byref(uuid), self.device)
        text = bytes(uuid.bytes).hex()
        return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def synchronize(self):
        self._call("cuCtxSynchronize")

    # The content of memory

    def read(self, address, length):
        data = (c_char * length)()
        self._call("cuMemcpyDtoH_v2", data, address, length)
        return data.raw

    def write(self, address, data):
        self._call("cuMemcpyHtoD_v2", address, data, len(data))
        self.synchronize()

    def invert(self, address, length):
        """Replaces every byte by 255 minus it."""
        self.write(address, self.read(address, length).translate(INVERTED))

    # Plain memory

    def allocate(self, length):
        address = Address()
        self._call("cuMemAlloc_v2", byref(address), length)
        return address.value

    def free(self, address):
        self._call("cuMemFree_v2", address)

    def allocation_of(self, address):
        """Returns the start of the allocation that contains an address."""
        start, length = Address(), c_size_t()
        self._call("cuMemGetAddressRange_v2", byref(start), byref(length), address)
        return start.value

    # Legacy IPC

    def ipc_handle(self, address):
        """Requires the start of an allocation, because the handle means the whole allocation."""
        handle = Bytes64()
        self._call("cuIpcGetMemHandle", byref(handle), address)
        return bytes(handle.bytes)

    def ipc_open(self, handle):
        address = Address()
        self._call("cuIpcOpenMemHandle_v2", byref(address), Bytes64.from_buffer_copy(handle), LAZY_PEER_ACCESS)
        return address.value

    def ipc_close(self, address):
        self._call("cuIpcCloseMemHandle", address)

    # Physical memory

    def create(self, length):
        handle = Handle()
        self._call("cuMemCreate", byref(handle), length, byref(self._properties()), 0)
        return handle.value

    def granularity(self):
        length = c_size_t()
        self._call("cuMemGetAllocationGranularity", byref(length), byref(self._properties()), 0)
        return length.value

    def export_memory(self, handle):
        descriptor = c_int()
        self._call("cuMemExportToShareableHandle", byref(descriptor), handle, POSIX_FILE_DESCRIPTOR, 0)
        return descriptor.value

    def import_memory(self, descriptor):
        """The driver takes the descriptor in place of a pointer."""
        handle = Handle()
        self._call("cuMemImportFromShareableHandle", byref(handle), descriptor, POSIX_FILE_DESCRIPTOR)
        return handle.value

    def map(self, handle, length):
        """Maps the whole allocation, gives this device access, and releases everything but the mapping."""

        address = Address()
        self._call("cuMemAddressReserve", byref(address), length, 0, 0, 0)
        self._call("cuMemMap", address, length, 0, handle, 0)
        self._call("cuMemRelease", handle)
        access = AccessDescription(Location(DEVICE, self.device), READ_WRITE)
        self._call("cuMemSetAccess", address, length, byref(access), 1)
        return address.value

    def unmap(self, address, length):
        # The driver does not wait for work that uses the memory.
        self.synchronize()
        self._call("cuMemUnmap", address, length)
        self._call("cuMemAddressFree", address, length)

    # Pools

    def create_pool(self):
        pool = c_void_p()
        properties = PoolProperties(PINNED, POSIX_FILE_DESCRIPTOR, Location(DEVICE, self.device))
        self._call("cuMemPoolCreate", byref(pool), byref(properties))
        return pool.value

    def destroy_pool(self, pool):
        self._call("cuMemPoolDestroy", pool)

    def export_pool(self, pool):
        descriptor = c_int()
        self._call("cuMemPoolExportToShareableHandle", byref(descriptor), pool, POSIX_FILE_DESCRIPTOR, 0)
        return descriptor.value

    def import_pool(self, descriptor):
        pool = c_void_p()
        self._call("cuMemPoolImportFromShareableHandle", byref(pool), descriptor, POSIX_FILE_DESCRIPTOR, 0)
        return pool.value

    def allocate_from(self, pool, length):
        address = Address()
        self._call("cuMemAllocFromPoolAsync", byref(address), length, pool, None)
        self.synchronize()
        return address.value

    def free_to_pool(self, address):
        self._call("cuMemFreeAsync", address, None)
        self.synchronize()

    def export_pointer(self, address):
        data = Bytes64()
        self._call("cuMemPoolExportPointer", byref(data), address)
        return bytes(data.bytes)

    def import_pointer(self, pool, data):
        address = Address()
        self._call("cuMemPoolImportPointer", byref(address), pool, byref(Bytes64.from_buffer_copy(data)))
        return address.value

    def _properties(self):
        return AllocationProperties(PINNED, POSIX_FILE_DESCRIPTOR, Location(DEVICE, self.device))

    def _call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, byref(text))
            raise CudaError(f"{name}: {(text.value or b'?').decode()} ({status})")
