"""Makes ptx/others/triton_*.ptx with Triton 3.6. Needs no GPU: python3 tritonKernels.py"""

import json
import pathlib
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FOLDER = pathlib.Path(__file__).parent.parent / "ptx" / "others"


@triton.jit
def axpy(x, y, out, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, a * tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def row_sum(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    tl.store(out + row, tl.sum(total, axis=0))


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    weights = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * columns + at, weights / tl.sum(weights, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, gain, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(v, axis=0) / columns
    centred = tl.where(mask, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    result = centred * scale * tl.load(gain + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, result, mask=mask)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0)
        right = tl.load(b + inner[:, None] * n + columns[None, :], mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def scan(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at, mask=at < n, other=0), axis=0), mask=at < n)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(out + bins, 1, mask=at < n)


KERNELS = [
    (axpy, "axpy", dict(x="*fp32", y="*fp32", out="*fp32", a="fp32", n="i32"), dict(BLOCK=256), 80, {}),
    (row_sum, "row_sum", dict(x="*fp32", out="*fp32", columns="i32"), dict(BLOCK=128), 80, {}),
    (softmax, "softmax", dict(x="*fp32", out="*fp32", columns="i32"), dict(BLOCK=512), 80, {}),
    (layer_norm, "layer_norm", dict(x="*fp32", gain="*fp32", bias="*fp32", out="*fp32", columns="i32", epsilon="fp32"), dict(BLOCK=512), 80, {}),
    (matmul, "matmul_f32", dict(a="*fp32", b="*fp32", c="*fp32", m="i32", n="i32", k="i32"), dict(M=32, N=32, K=16), 80, {}),
    # This kernel needs mma, ldmatrix and asynchronous copies.
    (matmul, "matmul_f16", dict(a="*fp16", b="*fp16", c="*fp32", m="i32", n="i32", k="i32"), dict(M=32, N=32, K=16), 80, {"num_stages": 3}),
    (scan, "scan", dict(x="*i32", out="*i32", n="i32"), dict(BLOCK=256), 80, {}),
    (histogram, "histogram", dict(x="*i32", out="*i32", n="i32"), dict(BLOCK=128, BINS=32), 80, {}),
]

facts = {}
for kernel, name, signature, constants, capability, options in KERNELS:
    source = ASTSource(kernel, signature={**signature, **{key: "constexpr" for key in constants}}, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4, **options})
    ptx = re.sub(r'^\s*\.(loc|file)\b.*\n', "", made.asm["ptx"], flags=re.M)
    # The sections for debuggers contain the path of this folder.

    ptx = re.sub(r"^\s*\.section\b.*?^\s*\}\s*$", "", ptx, flags=re.M | re.S)
    (FOLDER / f"triton_{name}.ptx").write_text(ptx)
    facts[name] = dict(entry=made.metadata.name, block=made.metadata.num_warps * 32, shared=made.metadata.shared)
(FOLDER / "triton.json").write_text(json.dumps(facts, indent=2) + "\n")
