"""The same calls through the Python bindings.

Answers requests on standard input, so that its loops can alternate with other programs:

    LIBRARY CASE BURSTS CALLS    nanoseconds per call, in BURSTS bursts of CALLS calls each; the waits for the GPU
                                 after each burst do not count

Starts with a line of JSON: for each library its version and cases, or the reason why it is missing.
Argument: a PTX file with the kernels empty0 and empty4. If it has addOne, too, there are round trips.
"""

import ctypes
import json
import pathlib
import sys
import timeit

COPY_BYTES = 1024
POOL_BYTES = 4096
TRIP_BYTES = 65536


def bindings(ptx):
    from cuda.bindings import driver as cuda

    def done(answer):
        if int(answer[0]) != 0:
            raise RuntimeError(f"cuda.bindings: {answer[0]}")
        return answer[1] if len(answer) > 1 else None

    done(cuda.cuInit(0))
    device = done(cuda.cuDeviceGet(0))
    done(cuda.cuCtxSetCurrent(done(cuda.cuDevicePrimaryCtxRetain(device))))
    stream = done(cuda.cuStreamCreate(1))
    event = done(cuda.cuEventCreate(2))
    source = done(cuda.cuMemAlloc(COPY_BYTES))
    target = done(cuda.cuMemAlloc(COPY_BYTES))
    module = done(cuda.cuModuleLoadData(ptx.encode() + b"\0"))
    names = {
        "cuda": cuda,
        "stream": stream,
        "event": event,
        "source": source,
        "target": target,
        "empty0": done(cuda.cuModuleGetFunction(module, b"empty0")),
        "empty4": done(cuda.cuModuleGetFunction(module, b"empty4")),
        "arguments": (
            (2.0, source, target, COPY_BYTES // 4),
            (ctypes.c_float, None, None, ctypes.c_int),
        ),
        "copy_bytes": COPY_BYTES,
        "pool_bytes": POOL_BYTES,
    }
    cases = {
        "launch0": "cuda.cuLaunchKernel(empty0, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)",
        "launch4": "cuda.cuLaunchKernel(empty4, 1, 1, 1, 32, 1, 1, 0, stream, arguments, 0)",
        "copy": "cuda.cuMemcpyDtoDAsync(target, source, copy_bytes, stream)",
        "fill": "cuda.cuMemsetD8Async(target, 0, copy_bytes, stream)",
        "record": "cuda.cuEventRecord(event, stream)",
        "query": "cuda.cuStreamQuery(stream)",
        "pool": "cuda.cuMemFreeAsync(cuda.cuMemAllocAsync(pool_bytes, stream)[1], stream)",
        "current": "cuda.cuCtxGetCurrent()",
    }
    return version_of("cuda-bindings"), cases, names, lambda: done(cuda.cuStreamSynchronize(stream))


def core(ptx):
    import numpy
    from cuda.core import Device, LaunchConfig, ObjectCode, launch

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    module = ObjectCode.from_ptx(ptx.encode())
    names = {
        "launch": launch,
        "device": device,
        "stream": stream,
        "event": device.create_event(),
        "config": LaunchConfig(grid=1, block=32),
        "empty0": module.get_kernel("empty0"),
        "empty4": module.get_kernel("empty4"),
        "source": device.allocate(COPY_BYTES, stream=stream),
        "target": device.allocate(COPY_BYTES, stream=stream),
        "a": numpy.float32(2),
        "n": numpy.int32(COPY_BYTES // 4),
        "pool_bytes": POOL_BYTES,
    }
    cases = {
        "launch0": "launch(stream, config, empty0)",
        "launch4": "launch(stream, config, empty4, a, source, target, n)",
        "copy": "source.copy_to(target, stream=stream)",
        "record": "stream.record(event)",
        "pool": "device.allocate(pool_bytes, stream=stream).close(stream)",
    }
    return version_of("cuda-core"), cases, names, stream.sync


def cupy(ptx):
    import cupy as cp
    import numpy

    stream = cp.cuda.Stream(non_blocking=True)
    module = cp.RawModule(path=str(ptx_path()))
    source = cp.zeros(COPY_BYTES // 4, dtype=cp.float32)
    target = cp.zeros(COPY_BYTES // 4, dtype=cp.float32)
    cp.cuda.get_current_stream().synchronize()
    names = {
        "stream": stream,
        "event": cp.cuda.Event(disable_timing=True),
        "runtime": cp.cuda.runtime,
        "driver": cp.cuda.driver,
        "handle": stream.ptr,
        "empty0": module.get_function("empty0"),
        "empty4": module.get_function("empty4"),
        "source": source.data,
        "target": target.data,
        "arguments": (numpy.float32(2), source, target, numpy.int32(COPY_BYTES // 4)),
        "grid": (1,),
        "block": (32,),
        "copy_bytes": COPY_BYTES,
        "pool_bytes": POOL_BYTES,
    }
    cases = {
        "launch0": "empty0(grid, block, ())",
        "launch4": "empty4(grid, block, arguments)",
        "copy": "target.copy_from_device_async(source, copy_bytes, stream)",
        "fill": "target.memset_async(0, copy_bytes, stream)",
        "record": "event.record(stream)",
        "query": "stream.done",
        "pool": "runtime.freeAsync(runtime.mallocAsync(pool_bytes, handle), handle)",
        "current": "driver.ctxGetCurrent()",
    }
    if "addOne" in ptx:
        count = TRIP_BYTES // 4
        names["host"] = numpy.frombuffer(cp.cuda.alloc_pinned_memory(TRIP_BYTES), numpy.float32, count)
        names["trip"] = cp.zeros(count, dtype=cp.float32)
        names["add_one"] = module.get_function("addOne")
        names["trip_grid"], names["trip_block"] = (count // 256,), (256,)
        names["trip_arguments"] = (names["trip"], numpy.uint32(count))
        cases["idle"] = "stream.synchronize()"
        cases["launch"] = "empty0(grid, block, ()); stream.synchronize()"
        cases["pinned"] = (
            "trip.set(host, stream=stream); add_one(trip_grid, trip_block, trip_arguments); "
            "trip.get(stream=stream, out=host)"
        )
        cp.cuda.get_current_stream().synchronize()
    # CuPy launches on the current stream of the thread.
    stream.use()
    return cp.__version__, cases, names, stream.synchronize


def torch(ptx):
    import torch as t

    stream = t.cuda.Stream(0)
    t.cuda.set_stream(stream)
    names = {
        "stream": stream,
        "event": t.cuda.Event(),
        "source": t.zeros(COPY_BYTES // 4, device="cuda:0"),
        "target": t.zeros(COPY_BYTES // 4, device="cuda:0"),
    }
    cases = {
        "copy": "target.copy_(source, non_blocking=True)",
        "fill": "target.zero_()",
        "record": "event.record(stream)",
        "query": "stream.query()",
    }
    if "addOne" in ptx:
        names["host"] = t.zeros(TRIP_BYTES // 4, pin_memory=True)
        names["trip"] = t.zeros(TRIP_BYTES // 4, device="cuda:0")
        cases["idle"] = "stream.synchronize()"
        cases["launch"] = "trip.add_(1); stream.synchronize()"
        cases["pinned"] = (
            "trip.copy_(host, non_blocking=True); trip.add_(1); "
            "host.copy_(trip, non_blocking=True); stream.synchronize()"
        )
    return t.__version__, cases, names, stream.synchronize


def version_of(distribution):
    import importlib.metadata

    return importlib.metadata.version(distribution)


def ptx_path():
    return pathlib.Path(sys.argv[1])


def main():
    ptx = ptx_path().read_text()
    report, timers, waits = {}, {}, {}
    for name, prepare in {"cuda.bindings": bindings, "cuda.core": core, "CuPy": cupy, "PyTorch": torch}.items():
        try:
            version, cases, names, wait = prepare(ptx)
            working, refused = [], {}
            for case, statement in cases.items():
                timer = timeit.Timer(statement, globals=names)
                try:
                    timer.timeit(3)
                    wait()
                except Exception as error:
                    refused[case] = f"{type(error).__name__}: {error}"
                    continue
                timers[name, case] = timer
                working.append(case)
            waits[name] = wait
            report[name] = {"version": version, "cases": working, "refused": refused}
        except Exception as error:
            report[name] = {"missing": f"{type(error).__name__}: {error}"}
    print(json.dumps(report), flush=True)

    for line in sys.stdin:
        name, case, bursts, calls = line.split()
        seconds = 0.0
        for _ in range(int(bursts)):
            seconds += timers[name, case].timeit(int(calls))
            waits[name]()
        print(seconds * 1e9 / (int(bursts) * int(calls)), flush=True)


if __name__ == "__main__":
    main()
