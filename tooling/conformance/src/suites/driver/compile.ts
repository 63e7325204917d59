import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeviceBuffer } from '@shoal/driver'
import { compile, compileSync, type ModuleCompileOptions, Program } from '@shoal/driver/compile'
import { LibraryNotFoundError } from '@shoal/types'
import type { CaseContext, ConformanceCase, Suite } from '../../suite.js'

const given = Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8)
const kernel = (body: string): string => `extern "C" __global__ void k(float* x) { int i = threadIdx.x; ${body} }`

interface Source {
  readonly what: string
  readonly source: string | Program
  readonly options?: ModuleCompileOptions
  readonly name?: string
  readonly expected: (value: number, index: number) => number
}

/**
 * Sources that the real NVRTC must compile. They run on the device and must give JavaScript's result. `include` has two
 * headers.
 */
const casesWith = (include: string): readonly Source[] => [
  { what: 'a plain kernel', source: kernel('x[i] *= 3;'), expected: (v) => v * 3 },
  { what: 'a macro', source: kernel('x[i] *= F;'), options: { defines: { F: 4 } }, expected: (v) => v * 4 },
  {
    what: 'a macro with a parameter',
    source: kernel('x[i] = SQ(x[i]);'),
    options: { defines: { 'SQ(a)': '((a)*(a))' } },
    expected: (v) => v * v,
  },
  {
    what: 'a macro taken back',
    source: kernel('\n#ifdef A\nx[i] = 0;\n#else\nx[i] += 1;\n#endif\n'),
    options: { defines: { A: true }, undefines: ['A'] },
    expected: (v) => v + 1,
  },
  {
    what: 'a header as text',
    source: `#include "a.h"\n${kernel('x[i] = f(x[i]);')}`,
    options: { headers: { 'a.h': '__device__ float f(float v) { return v - 1; }' } },
    expected: (v) => v - 1,
  },
  {
    what: 'headers that include each other',
    source: `#include <b.h>\n${kernel('x[i] = B;')}`,
    options: { headers: { 'b.h': '#include "c.h"\n#define B C', 'c.h': '#define C 5' } },
    expected: () => 5,
  },
  {
    what: 'a header in a folder, in quotes',
    source: `#include "twice.h"\n${kernel('x[i] = twice(x[i]);')}`,
    options: { includeFolders: [include] },
    expected: (v) => 2 * v,
  },
  {
    what: 'a header behind another',
    source: `#include <outer.h>\n${kernel('x[i] = twice(x[i]);')}`,
    options: { includeFolders: [include] },
    expected: (v) => 2 * v,
  },
  {
    what: 'a header that is included before all else',
    source: kernel('x[i] = twice(x[i]);'),
    options: { includeFolders: [include], preIncludes: ['twice.h'] },
    expected: (v) => 2 * v,
  },
  {
    what: 'a template',
    source: 'template <class T> __global__ void s(T* x) { x[threadIdx.x] += T(1); }',
    options: { nameExpressions: ['s<float>'] },
    name: 's<float>',
    expected: (v) => v + 1,
  },
  {
    what: 'a template of a number',
    source: 'template <int N> __global__ void s(float* x) { x[threadIdx.x] += N; }',
    options: { nameExpressions: ['s<2 + 3>'] },
    name: 's<2 + 3>',
    expected: (v) => v + 5,
  },
  {
    what: 'a namespace',
    source: 'namespace a { namespace b { __global__ void s(float* x) { x[threadIdx.x] = 9; } } }',
    options: { nameExpressions: ['a::b::s'] },
    name: 'a::b::s',
    expected: () => 9,
  },
  { what: 'a Program', source: new Program(kernel('x[i] += 2;'), { name: 'two.cu' }), expected: (v) => v + 2 },
  {
    what: 'C++11',
    source: kernel('auto f = [](float v) { return v * 2; }; x[i] = f(x[i]);'),
    options: { standard: 'c++11' },
    expected: (v) => v * 2,
  },
  {
    what: 'C++14',
    source: `__device__ auto twice(float v) { return v * 2; }\n${kernel('x[i] = twice(x[i]);')}`,
    options: { standard: 'c++14' },
    expected: (v) => v * 2,
  },
  {
    what: 'C++17',
    source: `template <class... T> __device__ float sum(T... t) { return (t + ...); }\n${kernel('if constexpr (true) x[i] = sum(x[i], 1.f, 2.f);')}`,
    options: { standard: 'c++17' },
    expected: (v) => v + 3,
  },
  {
    what: 'C++20',
    source: `template <class T> concept Small = sizeof(T) <= 4;\ntemplate <Small T> __device__ T same(T t) { return t; }\n${kernel('x[i] = same(x[i]) + 1;')}`,
    options: { standard: 'c++20' },
    expected: (v) => v + 1,
  },
  { what: 'lines for profilers', source: kernel('x[i] *= 2;'), options: { lineInfo: true }, expected: (v) => v * 2 },
  {
    what: 'debug information',
    source: kernel('float y = x[i]; for (int n = 0; n < 3; n++) y += 1; x[i] = y;'),
    options: { deviceDebug: true },
    expected: (v) => v + 3,
  },
  { what: 'few registers', source: kernel('x[i] *= 2;'), options: { maxRegisters: 16 }, expected: (v) => v * 2 },
  {
    what: 'without contraction',
    source: kernel('x[i] = x[i] * 2 + 1;'),
    options: { fmad: false },
    expected: (v) => v * 2 + 1,
  },
  {
    what: 'exact roots and divisions',
    source: kernel('x[i] = sqrtf(x[i] * x[i]) / 2;'),
    options: { precSqrt: true, precDiv: true, ftz: false },
    expected: (v) => v / 2,
  },
  {
    what: 'shared memory and a barrier',
    source: kernel('__shared__ float s[8]; s[i] = x[i]; __syncthreads(); x[i] = s[7 - i];'),
    expected: (_, i) => 8 - i,
  },
  { what: 'a shuffle', source: kernel('x[i] = __shfl_xor_sync(0xff, x[i], 1);'), expected: (_, i) => (i ^ 1) + 1 },
  {
    what: 'an atomic',
    source: `__device__ int n;\n${kernel('atomicAdd(&n, 1); __syncthreads(); x[i] = n;')}`,
    expected: () => 8,
  },
  {
    what: 'constant memory',
    source: `__constant__ float c[2] = {10, 20};\n${kernel('x[i] += c[i & 1];')}`,
    expected: (v, i) => v + (i & 1 ? 20 : 10),
  },
  {
    what: 'a struct and its methods',
    source: `struct V { float a; __device__ V operator+(V o) const { return {a + o.a}; } };\n${kernel('x[i] = (V{x[i]} + V{1}).a;')}`,
    expected: (v) => v + 1,
  },
  {
    what: 'recursion',
    source: `__device__ int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }\n${kernel('x[i] = fact(int(x[i]) % 6);')}`,
    expected: (v) => [1, 1, 2, 6, 24, 120][v % 6] as number,
  },
  {
    what: 'PTX in between',
    source: kernel('int l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); x[i] = l;'),
    expected: (_, i) => i,
  },
  {
    what: 'functions without a word',
    source: `float f(float v) { return v * 3; }\n${kernel('x[i] = f(x[i]);')}`,
    options: { deviceAsDefaultExecutionSpace: true },
    expected: (v) => v * 3,
  },
  {
    what: 'a warning that is left out',
    source: kernel('int unused; x[i] *= 2;'),
    options: { diagnosticSuppress: [177] },
    expected: (v) => v * 2,
  },
  { what: 'a raw option', source: kernel('x[i] = RAW;'), options: { raw: ['-DRAW=6'] }, expected: () => 6 },
]

/**
 * Compiles a source and runs it, through the synchronous and the asynchronous function. On a GPU it runs as machine
 * code and as PTX.
 */
async function runs(t: CaseContext, { source, options = {}, name = 'k', expected }: Source, cache: string) {
  const { major, minor } = t.device.computeCapability
  const want = [...given].map(expected)
  const ptx = { ...options, architecture: `compute_${10 * major + minor}`, cache: false } as const
  for (const module of [await compile(t.device, source, { ...options, cache }), compileSync(t.device, source, ptx)]) {
    t.own(module)
    const x = t.own(DeviceBuffer.from(t.device, given))
    module.kernel(name, ['ptr']).launch({ grid: 1, block: given.length }, x)
    assert.deepEqual([...(await x.toArray())], want)
  }
}

const cases = casesWith('').map(
  ({ what }, index): ConformanceCase => ({
    name: what,
    async run(t) {
      const folder = mkdtempSync(join(tmpdir(), 'shoal-sources-'))
      t.defer(() => rmSync(folder, { recursive: true, force: true }))
      const include = join(folder, 'include')
      mkdirSync(include)
      writeFileSync(
        join(include, 'twice.h'),
        '#pragma once\n__device__ inline float twice(float v) { return 2 * v; }\n',
      )
      writeFileSync(join(include, 'outer.h'), '#include "twice.h"\n')
      try {
        await runs(t, casesWith(include)[index] as Source, join(folder, 'cache'))
      } catch (error) {
        if (error instanceof LibraryNotFoundError) t.skip('no libnvrtc on this machine')
        throw error
      }
    },
  }),
)

/** CUDA C++ sources that use the options, compiled by NVRTC and run on the device. */
export const compileSuite: Suite = { name: 'driver compile', cases }
