"""The same tasks with Python's CUDA libraries. The driver (LibCuda) does what a library has no function for."""

import importlib.metadata

from libcuda import LibCuda


class CuPy(LibCuda):
    """CuPy opens and exports IPC handles itself. Mapped memory becomes a CuPy array."""

    name = "CuPy"

    def __init__(self, path):
        super().__init__(path)
        import cupy

        self.cupy = cupy
        self.allocations = {}

    def version(self):
        return self.cupy.__version__

    def array(self, address, length):
        memory = self.cupy.cuda.UnownedMemory(address, length, owner=self, device_id=self.device)
        return self.cupy.ndarray((length,), self.cupy.uint8, self.cupy.cuda.MemoryPointer(memory, 0))

    def read(self, address, length):
        return self.array(address, length).get().tobytes()

    def write(self, address, data):
        import numpy

        self.array(address, len(data)).set(numpy.frombuffer(data, numpy.uint8))
        self.synchronize()

    def invert(self, address, length):
        array = self.array(address, length)
        self.cupy.invert(array, out=array)
        self.synchronize()

    def allocate(self, length):
        array = self.cupy.empty(length, self.cupy.uint8)
        self.allocations[array.data.ptr] = array
        return array.data.ptr

    def free(self, address):
        del self.allocations[address]

    def ipc_handle(self, address):
        return bytes(self.cupy.cuda.runtime.ipcGetMemHandle(address))

    def ipc_open(self, handle):
        return self.cupy.cuda.runtime.ipcOpenMemHandle(handle)

    def ipc_close(self, address):
        self.cupy.cuda.runtime.ipcCloseMemHandle(address)


class CudaArray:
    """Describes memory as the CUDA array interface requires."""

    def __init__(self, address, length):
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (length,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
        }


class PyTorch(LibCuda):
    """Mapped memory becomes a tensor. Exports use the memory of a tensor."""

    name = "PyTorch"

    def __init__(self, path):
        super().__init__(path)
        import torch

        torch.cuda.init()
        self.torch = torch
        self.allocations = {}

    def version(self):
        return self.torch.__version__

    def tensor(self, address, length):
        tensor = self.torch.as_tensor(CudaArray(address, length), device=f"cuda:{self.device}")
        if tensor.data_ptr() != address:
            raise RuntimeError("PyTorch made a copy of the memory")
        return tensor

    def read(self, address, length):
        return self.tensor(address, length).cpu().numpy().tobytes()

    def write(self, address, data):
        self.tensor(address, len(data)).copy_(self.torch.frombuffer(bytearray(data), dtype=self.torch.uint8))
        self.synchronize()

    def invert(self, address, length):
        self.tensor(address, length).bitwise_not_()
        self.synchronize()

    def allocate(self, length):
        tensor = self.torch.empty(length, dtype=self.torch.uint8, device=f"cuda:{self.device}")
        self.allocations[tensor.data_ptr()] = tensor
        return tensor.data_ptr()

    def free(self, address):
        del self.allocations[address]


class CudaBindings(LibCuda):
    """NVIDIA's cuda.bindings, for everything except the names of errors."""


    name = "cuda.bindings"

    def __init__(self, path):
        super().__init__(path)
        from cuda.bindings import driver

        self.driver = driver
        self.kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

    def version(self):
        return importlib.metadata.version("cuda-bindings")

    def read(self, address, length):
        data = bytearray(length)
        self._do("cuMemcpyDtoH", data, address, length)
        return bytes(data)

    def write(self, address, data):
        self._do("cuMemcpyHtoD", address, data, len(data))
        self.synchronize()

    def allocate(self, length):
        return int(self._do("cuMemAlloc", length))

    def free(self, address):
        self._do("cuMemFree", address)

    def ipc_handle(self, address):
        return bytes(self._do("cuIpcGetMemHandle", address).reserved)

    def ipc_open(self, handle):
        wanted = self.driver.CUipcMemHandle()
        wanted.reserved = handle
        flags = self.driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
        return int(self._do("cuIpcOpenMemHandle", wanted, int(flags)))

    def ipc_close(self, address):
        self._do("cuIpcCloseMemHandle", address)

    def create(self, length):
        return int(self._do("cuMemCreate", length, self._wanted(), 0))

    def export_memory(self, handle):
        return int(self._do("cuMemExportToShareableHandle", self._handle(handle), self.kind, 0))

    def import_memory(self, descriptor):
        return int(self._do("cuMemImportFromShareableHandle", descriptor, self.kind))

    def map(self, handle, length):
        address = int(self._do("cuMemAddressReserve", length, 0, 0, 0))
        self._do("cuMemMap", address, length, 0, self._handle(handle), 0)
        self._do("cuMemRelease", self._handle(handle))
        access = self.driver.CUmemAccessDesc()
        access.location = self._location()
        access.flags = self.driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        self._do("cuMemSetAccess", address, length, [access], 1)
        return address

    def unmap(self, address, length):
        self.synchronize()
        self._do("cuMemUnmap", address, length)
        self._do("cuMemAddressFree", address, length)

    def _wanted(self):
        properties = self.driver.CUmemAllocationProp()
        properties.type = self.driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.requestedHandleTypes = self.kind
        properties.location = self._location()
        return properties

    def _location(self):
        location = self.driver.CUmemLocation()
        location.type = self.driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        location.id = self.device
        return location

    def _handle(self, value):
        return self.driver.CUmemGenericAllocationHandle(value)

    def _do(self, name, *arguments):
        status, *values = getattr(self.driver, name)(*arguments)
        if int(status) != 0:
            raise RuntimeError(f"{name}: {status}")
        return values[0] if values else None


LIBRARIES = {library.name: library for library in (LibCuda, CudaBindings, CuPy, PyTorch)}
