"""Makes ptx/others/cupy_*.ptx with CuPy, which needs a GPU for this: python3 cupyKernels.py [FOLDER]"""

import os
import pathlib
import re
import sys
import tempfile

FOLDER = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "ptx" / "others"
CACHE = tempfile.mkdtemp()
# CuPy caches its compiled PTX in files that start with a checksum.

os.environ.update(CUPY_ACCELERATORS="", CUPY_COMPILE_WITH_PTX="1", CUPY_CACHE_DIR=CACHE)

import cupy
from cupyx import jit

axpy = cupy.ElementwiseKernel("float32 x, float32 y, float32 a", "float32 out", "out = a * x + y", "cupy_axpy")
total = cupy.ReductionKernel("float32 x", "float32 out", "x", "a + b", "out = a", "0", "cupy_total")


@cupy.fuse()
def cupy_softplus(x, y):
    return cupy.log1p(cupy.exp(x)) * y + cupy.sqrt(cupy.abs(y))


@jit.rawkernel()
def cupy_softmax(x, out, columns):
    row = jit.blockIdx.x
    part = jit.shared_memory(cupy.float32, 64)
    t = jit.threadIdx.x
    most = cupy.float32(-3.0e38)
    for i in range(t, columns, cupy.uint32(64)):
        most = max(most, x[row * columns + i])
    part[t] = most
    jit.syncthreads()
    half = cupy.uint32(32)
    while half > cupy.uint32(0):
        if t < half:
            part[t] = max(part[t], part[t + half])
        jit.syncthreads()
        half = half >> cupy.uint32(1)
    most = part[0]
    jit.syncthreads()
    own = cupy.float32(0)
    for i in range(t, columns, cupy.uint32(64)):
        weight = cupy.exp(x[row * columns + i] - most)
        out[row * columns + i] = weight
        own += weight
    part[t] = own
    jit.syncthreads()
    half = cupy.uint32(32)
    while half > cupy.uint32(0):
        if t < half:
            part[t] += part[t + half]
        jit.syncthreads()
        half = half >> cupy.uint32(1)
    for i in range(t, columns, cupy.uint32(64)):
        out[row * columns + i] /= part[0]


@jit.rawkernel()
def cupy_layer_norm(x, out, columns, epsilon):
    row = jit.blockIdx.x
    lane = jit.threadIdx.x
    own = cupy.float32(0)
    for i in range(lane, columns, cupy.uint32(32)):
        own += x[row * columns + i]
    step = 16
    while step > 0:
        own += jit.shfl_xor_sync(0xFFFFFFFF, own, step)
        step = step >> 1
    mean = own / cupy.float32(columns)
    own = cupy.float32(0)
    for i in range(lane, columns, cupy.uint32(32)):
        own += (x[row * columns + i] - mean) * (x[row * columns + i] - mean)
    step = 16
    while step > 0:
        own += jit.shfl_xor_sync(0xFFFFFFFF, own, step)
        step = step >> 1
    scale = cupy.float32(1) / cupy.sqrt(own / cupy.float32(columns) + epsilon)
    for i in range(lane, columns, cupy.uint32(32)):
        out[row * columns + i] = (x[row * columns + i] - mean) * scale


@jit.rawkernel()
def cupy_matmul(a, b, c, m, n, k):
    left = jit.shared_memory(cupy.float32, 64)
    right = jit.shared_memory(cupy.float32, 64)
    tx = jit.threadIdx.x
    ty = jit.threadIdx.y
    column = jit.blockIdx.x * cupy.uint32(8) + tx
    row = jit.blockIdx.y * cupy.uint32(8) + ty
    own = cupy.float32(0)
    for start in range(cupy.uint32(0), k, cupy.uint32(8)):
        left[ty * cupy.uint32(8) + tx] = cupy.float32(0)
        right[ty * cupy.uint32(8) + tx] = cupy.float32(0)
        if row < m and start + tx < k:
            left[ty * cupy.uint32(8) + tx] = a[row * k + start + tx]
        if column < n and start + ty < k:
            right[ty * cupy.uint32(8) + tx] = b[(start + ty) * n + column]
        jit.syncthreads()
        for i in range(cupy.uint32(0), cupy.uint32(8), cupy.uint32(1)):
            own += left[ty * cupy.uint32(8) + i] * right[i * cupy.uint32(8) + tx]
        jit.syncthreads()
    if row < m and column < n:
        c[row * n + column] = own


@jit.rawkernel()
def cupy_count(x, out, size):
    for i in range(jit.grid(1), size, jit.gridsize(1)):
        jit.atomic_add(out, x[i] % 16, 1)


line = cupy.zeros(600, cupy.float32)
u32 = cupy.uint32
axpy(line, line, cupy.float32(2.5))
total(line)
cupy_softplus(line, line)
cupy_softmax((20,), (64,), (line, line.copy(), u32(30)))
cupy_layer_norm((20,), (32,), (line, line.copy(), u32(30), cupy.float32(1e-5)))
cupy_matmul((3, 3), (8, 8), (line, line, line.copy(), u32(20), u32(20), u32(30)))
cupy_count((4,), (64,), (cupy.zeros(600, cupy.int32), cupy.zeros(16, cupy.int32), u32(600)))

for file in pathlib.Path(CACHE).glob("*.cubin"):
    kept = file.read_bytes()
    text = kept[kept.index(b"//") :].rstrip(b"\0").decode()
    name = re.search(r"\.visible \.entry (\w+)\(", text).group(1)
    if name in ("cupy_axpy", "cupy_total", "cupy_softplus", "cupy_softmax", "cupy_layer_norm", "cupy_matmul", "cupy_count"):
        (FOLDER / f"{name}.ptx").write_text(text)
        print(name)
