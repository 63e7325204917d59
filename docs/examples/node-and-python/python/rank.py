"""Rank 1 of 2 on device 1: reads the job from stdin as JSON, joins, all-reduces, checks every element.

With CuPy it is CuPy's NCCL and CuPy's arrays; without, the same calls through ctypes. NODE_AND_PYTHON=ctypes asks for those.
"""

import array
import base64
import ctypes
import json
import os
import sys

RANK, WORLD_SIZE, DEVICE = 1, 2, 1
FLOAT32, SUM = 7, 0


def data_of(rank, elements, seed):
    """What a rank brings: whole numbers, so that sums are exact. data.ts has the same rule."""
    return array.array("f", ((index * 7 + rank * 13 + seed) % 101 - 50 for index in range(elements)))


def count_wrong(result, elements, seed):
    ranks = [data_of(rank, elements, seed) for rank in range(WORLD_SIZE)]
    return sum(value != sum(parts) for value, *parts in zip(result, *ranks))


def with_cupy(job):
    if job["nccl"]:
        # Ranks need the same NCCL: what is loaded already is what CuPy gets.
        ctypes.CDLL(job["nccl"], mode=ctypes.RTLD_GLOBAL)
    import cupy
    import numpy
    from cupy.cuda import nccl

    with cupy.cuda.Device(DEVICE):
        communicator = nccl.NcclCommunicator(WORLD_SIZE, identifier_for(nccl, job["id"]), RANK)
        data = cupy.asarray(numpy.frombuffer(data_of(RANK, job["elements"], job["seed"]), dtype=numpy.float32))
        stream = cupy.cuda.Stream()
        cupy.cuda.Device().synchronize()
        communicator.allReduce(data.data.ptr, data.data.ptr, job["elements"], nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)
        stream.synchronize()
        result = cupy.asnumpy(data).tolist()
        communicator.destroy()
    return f"CuPy {cupy.__version__}, NCCL {nccl.get_version()}", result


def identifier_for(nccl, text):
    """The id as this CuPy has it: bytes, or in older ones a tuple of signed bytes."""
    raw = base64.b64decode(text)
    return raw if isinstance(nccl.get_unique_id(), bytes) else tuple(array.array("b", raw))


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 128)]


def with_ctypes(job):
    cuda = ctypes.CDLL(job["cuda"] or "libcuda.so.1")
    nccl = ctypes.CDLL(job["nccl"] or "libnccl.so.2")

    def call(library, name, *arguments):
        status = getattr(library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} failed with {status}")

    pointer, size_t, byref = ctypes.c_void_p, ctypes.c_size_t, ctypes.byref
    context, stream, communicator, address = pointer(), pointer(), pointer(), ctypes.c_uint64()
    data = data_of(RANK, job["elements"], job["seed"])
    host = (ctypes.c_float * len(data)).from_buffer(data)
    size = size_t(ctypes.sizeof(host))
    identifier = UniqueId.from_buffer_copy(base64.b64decode(job["id"]))
    call(cuda, "cuInit", 0)
    call(cuda, "cuDevicePrimaryCtxRetain", byref(context), DEVICE)
    call(cuda, "cuCtxSetCurrent", context)
    call(cuda, "cuStreamCreate", byref(stream), 0)
    call(cuda, "cuMemAlloc_v2", byref(address), size)
    call(cuda, "cuMemcpyHtoD_v2", address, host, size)
    call(nccl, "ncclCommInitRank", byref(communicator), WORLD_SIZE, identifier, RANK)
    call(nccl, "ncclAllReduce", address, address, size_t(len(data)), FLOAT32, SUM, communicator, stream)
    call(cuda, "cuStreamSynchronize", stream)
    call(cuda, "cuMemcpyDtoH_v2", host, address, size)
    call(nccl, "ncclCommDestroy", communicator)
    version = ctypes.c_int()
    call(nccl, "ncclGetVersion", byref(version))
    return f"ctypes, NCCL {version.value}", list(data)


def main():
    job = json.load(sys.stdin)
    try:
        if os.environ.get("NODE_AND_PYTHON") == "ctypes":
            raise ImportError
        what, result = with_cupy(job)
    except ImportError:
        what, result = with_ctypes(job)
    wrong = count_wrong(result, job["elements"], job["seed"])
    print(f"Python, rank 1 ({what}): {len(result)} elements, {wrong} wrong", flush=True)
    return 0 if wrong == 0 and len(result) == job["elements"] else 1


sys.exit(main())
