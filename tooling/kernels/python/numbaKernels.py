"""Makes ptx/others/numba_*.ptx with Numba. Needs libnvvm (under CUDA_HOME) and a libcuda, but no GPU:

NUMBA_CUDA_DRIVER=…/packages/sim/prebuilds/linux-x64/libshoal-sim-cuda.so.1 python3 numbaKernels.py
"""

import math
import pathlib
import re

from numba import cuda, float32

FOLDER = pathlib.Path(__file__).parent.parent / "ptx" / "others"


def axpy(x, y, out, a):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = a * x[i] + y[i]


def total(x, out):
    part = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    own = float32(0)
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        own += x[i]
    part[t] = own
    cuda.syncthreads()
    half = 64
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


def softmax(x, out):
    row = cuda.grid(1)
    if row >= x.shape[0]:
        return
    most = x[row, 0]
    for i in range(1, x.shape[1]):
        if x[row, i] > most:
            most = x[row, i]
    weights = float32(0)
    for i in range(x.shape[1]):
        out[row, i] = math.exp(x[row, i] - most)
        weights += out[row, i]
    for i in range(x.shape[1]):
        out[row, i] /= weights


def layer_norm(x, out, epsilon):
    row = cuda.blockIdx.x
    lane = cuda.threadIdx.x
    own = float32(0)
    for i in range(lane, x.shape[1], 32):
        own += x[row, i]
    for step in range(5):
        own += cuda.shfl_xor_sync(0xFFFFFFFF, own, 16 >> step)
    mean = own / float32(x.shape[1])
    own = float32(0)
    for i in range(lane, x.shape[1], 32):
        own += (x[row, i] - mean) * (x[row, i] - mean)
    for step in range(5):
        own += cuda.shfl_xor_sync(0xFFFFFFFF, own, 16 >> step)
    scale = float32(1) / math.sqrt(own / float32(x.shape[1]) + epsilon)
    for i in range(lane, x.shape[1], 32):
        out[row, i] = (x[row, i] - mean) * scale


def matmul(a, b, c):
    left = cuda.shared.array((8, 8), float32)
    right = cuda.shared.array((8, 8), float32)
    column, row = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    own = float32(0)
    for tile in range((a.shape[1] + 7) // 8):
        k = tile * 8
        left[ty, tx] = a[row, k + tx] if row < a.shape[0] and k + tx < a.shape[1] else float32(0)
        right[ty, tx] = b[k + ty, column] if column < b.shape[1] and k + ty < b.shape[0] else float32(0)
        cuda.syncthreads()
        for i in range(8):
            own += left[ty, i] * right[i, tx]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = own


LINE = float32[::1]
PLANE = float32[:, ::1]
KERNELS = [
    (axpy, (LINE, LINE, LINE, float32)),
    (total, (LINE, LINE)),
    (softmax, (PLANE, PLANE)),
    (layer_norm, (PLANE, PLANE, float32)),
    (matmul, (PLANE, PLANE, PLANE)),
]

for kernel, signature in KERNELS:
    ptx, _ = cuda.compile_ptx(kernel, signature, cc=(8, 0))
    entry = re.search(r"\.visible \.entry (\w+)\(", ptx).group(1)
    name = f"numba_{kernel.__name__}"
    # Numba's own names are hundreds of letters long, and different each time.

    (FOLDER / f"{name}.ptx").write_text(ptx.replace(entry, name))
