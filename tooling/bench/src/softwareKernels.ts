import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { number, table } from '@shoal/cli/bench'
import { Device, DeviceBuffer, Module } from '@shoal/driver'
import { atLeast, atMost } from './bars.js'
import { compile } from './compile.js'
import { NoDeviceError, type Outcome, type RunOptions } from './options.js'
import { median } from './statistics.js'
import { SubjectProcess } from './subjectProcess.js'
import { takeRounds } from './turns.js'

const head = '.version 8.0\n.target sm_75\n.address_size 64\n'

/** The number of instructions in one iteration of {@link arithmetic}'s loop, and the number of iterations. */
const [instructionsPerTurn, turns] = [19, 20_000]
const arithmetic = `${head}
.visible .entry arithmetic(.param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<3>;
  .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
  mov.u32 %r3, 17;
  cvt.rn.f32.u32 %f1, %r1;
  mov.f32 %f2, 0f3F800000;
loop:
${`  add.u32 %r3, %r3, %r1;
  xor.b32 %r3, %r3, %r2;
  mad.lo.u32 %r3, %r3, 5, %r1;
  fma.rn.f32 %f2, %f2, 0f3F7FFF00, %f1;
`.repeat(4)}  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p, %r2, ${turns};
  @%p bra loop;
  cvt.rzi.u32.f32 %r4, %f2;
  add.u32 %r3, %r3, %r4;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r3;
  ret;
}
`

const axpy = `${head}
.visible .entry axpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<6>;
  .reg .pred %p;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [n];
  setp.ge.u32 %p, %r4, %r5;
  @%p bra done;
  ld.param.f32 %f1, [a];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mul.wide.u32 %rd3, %r4, 4;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f3, %f1, %f2, %f3;
  st.global.f32 [%rd5], %f3;
done:
  ret;
}
`

/** A module of some 5,000 lines: the kernel above, repeated under many names. */
function longModule(): string {
  const body = arithmetic.slice(head.length)
  const kernels = Math.round(5000 / body.split('\n').length)
  return (
    head + Array.from({ length: kernels }, (_, index) => body.replace('entry arithmetic', `entry k${index}`)).join('')
  )
}

/**
 * Kernels of the software device: instructions per cycle, scaling over processors, comparison with C loops, module
 * loading.
 */
export async function benchSoftwareKernels({ device: kind, rounds }: RunOptions): Promise<Outcome> {
  if (kind !== 'sim') throw new NoDeviceError('kernels measures the software device: --device sim')
  const device = Device.get(0)
  const [elements, size, threads] = [2 ** 24, 512, 256]
  const microseconds = (work: () => void): number => {
    device.synchronizeSync()
    const start = performance.now()
    work()
    device.synchronizeSync()
    return (performance.now() - start) * 1000
  }
  using x = DeviceBuffer.zeros(device, 'f32', elements)
  using y = DeviceBuffer.zeros(device, 'f32', elements)
  const tiled = readFileSync(new URL('../../kernels/ptx/matrix.ptx', import.meta.url), 'utf8')
  using sums = Module.loadSync(device, arithmetic)
  using updates = Module.loadSync(device, axpy)
  using products = Module.loadSync(device, tiled)
  const add = sums.kernel('arithmetic', ['ptr'])
  const update = updates.kernel('axpy', ['f32', 'ptr', 'ptr', 'u32'])
  const multiply = products.kernel('multiplyTiled', ['ptr', 'ptr', 'ptr', 'i32', 'i32', 'i32'])
  const processors = availableParallelism()
  // A launch with few threads runs on one host thread, whatever its duration.
  const blocks = 16 * processors
  const text = longModule()
  const [c] = await SubjectProcess.start('kernels.c', compile('kernels.c'), [])
  const grid = Math.ceil(elements / threads)
  const figures = await takeRounds(
    {
      'a cycle of the processor, in C (ns)': () => c.measure('cycles 200000000'),
      'arithmetic, one block': () => microseconds(() => add.launch({ grid: 1, block: threads }, y)),
      [`arithmetic, ${blocks} blocks`]: () => microseconds(() => add.launch({ grid: blocks, block: threads }, y)),
      [`axpy of ${elements} elements, in C`]: () => c.measure(`axpy ${elements}`),
      [`axpy of ${elements} elements`]: () =>
        microseconds(() => update.launch({ grid, block: threads }, 1.5, x, y, elements)),
      [`product of ${size}³, in C`]: () => c.measure(`multiply ${size}`),
      [`product of ${size}³, tiled`]: () =>
        microseconds(() =>
          multiply.launch({ grid: [32, 32], block: [16, 16] }, x, y, x.slice(2 ** 20), size, size, size),
        ),
      'the start of bare Node': () => {
        const start = performance.now()
        execFileSync(process.execPath, ['-e', '0'])
        return (performance.now() - start) * 1000
      },
      [`load of ${text.split('\n').length} lines of PTX`]: () => {
        const start = performance.now()
        Module.loadSync(device, text).dispose()
        return (performance.now() - start) * 1000
      },
    },
    rounds,
  )
  c.close()
  const cases = Object.entries(figures).map(([what, each]) => ({ what, rounds: each, median: median(each) }))
  console.log(`Software device on ${processors} processors, medians of ${rounds} rounds, µs\n`)
  console.log(
    table(
      ['', 'median'],
      cases.map((each) => [each.what, number(each.median)]),
    ),
  )
  const [cycle, one, all, axpyInC, axpyHere, productInC, productHere, start, load] = cases.map(
    (each) => each.median,
  ) as [...[number, number, number, number, number], ...[number, number, number, number]]
  const instructions = threads * instructionsPerTurn * turns
  const bars = [
    atLeast('thread-instructions a cycle and processor', instructions / ((one * 1000) / cycle), 0.35),
    atLeast(`${processors} processors against one`, (one * blocks) / all, 0.925 * processors),
    atMost('axpy against the loop in C on one processor', axpyHere / axpyInC, 15),
    atMost('product of matrices against three loops in C on one processor', productHere / productInC, 6),
    atMost('load of the module to the start of Node', load / start, 1.5),
  ]
  return { results: { processors, cases }, bars }
}
