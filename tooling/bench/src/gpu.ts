import {
  callsPerBurst,
  copyBytes,
  type DriverCalls,
  emptyKernels,
  type Loop,
  makeDriverCalls,
  poolBytes,
  timeOfCall,
} from '@shoal/cli/bench'
import {
  type CUdeviceptr,
  type CUresult,
  cuCtxGetCurrent,
  cuEventRecord,
  cuLaunchKernel,
  cuMemAllocAsync,
  cuMemcpyDtoDAsync,
  cuMemFreeAsync,
  cuMemsetD8Async,
  cuStreamQuery,
} from '@shoal/cuda-sys/driver'
import type { Device } from '@shoal/driver'
import { NativeMemory } from '@shoal/ffi'
import { atMost, type Bar } from './bars.js'
import { compileWithCuda, writeTemporary } from './compile.js'
import { aboutDevices, devicesFor } from './devices.js'
import type { Outcome, RunOptions } from './options.js'
import { type PythonLibraries, printMissing, startPython } from './python.js'
import { SubjectProcess } from './subjectProcess.js'
import {
  type Case,
  compiled,
  differenceBetween,
  printRows,
  type Row,
  type Subject,
  subjectIn,
  subjectOf,
  takeTurns,
} from './turns.js'

const burstsPerLoop = 20
const titles: Readonly<Record<string, string>> = {
  launch0: 'cuLaunchKernel, no argument',
  launch4: 'cuLaunchKernel, 4 arguments',
  copy: 'cuMemcpyDtoDAsync, 1 KiB',
  fill: 'cuMemsetD8Async, 1 KiB',
  record: 'cuEventRecord',
  query: 'cuStreamQuery',
  pool: 'cuMemAllocAsync + cuMemFreeAsync, 4 KiB',
  current: 'cuCtxGetCurrent',
}

/** Times of calls of the driver. */
export interface CallFigures {
  readonly rows: readonly Row[]
  /** The subjects, in the order of the columns. */
  readonly names: readonly string[]
  readonly python: PythonLibraries
}

/** Calls of the CUDA driver: in C, through the raw package, through the driver package, and in Python. */
export async function benchGpu(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  const { rows, names, python } = await measureCalls(device, options, Object.keys(titles))
  console.log('Calls of the CUDA driver (median of rounds, each the best of 5 loops), and the ratio to C\n')
  printCalls({ rows, names, python })
  if (device.isSoftware) console.log('without launches: those of the software device are computed here')
  const details = { ...aboutDevices([device], options), callsPerBurst, python }
  return { results: { ...details, cases: rows }, bars: device.isSoftware ? [] : callBars(rows) }
}

/** What a call may cost beside C. */
export function callBars(rows: readonly Row[]): Bar[] {
  const rowOf = (test: string): Row | undefined => rows.find((row) => row.case === test)
  const launches = [
    ['driver', '4-argument launch through the driver package', 1.05],
    ['prepared', 'the same, prepared', 1.02],
  ] as const
  // A pair of calls counts as two.
  const short = { fill: 1, record: 1, query: 1, pool: 2 }
  return [
    ...launches.flatMap(([name, what, limit]) => {
      const ratio = rowOf('launch4')?.ratioToC[name]
      return ratio === undefined ? [] : [atMost(`${what}, ratio to C`, ratio, limit)]
    }),
    ...Object.entries(short).flatMap(([test, calls]) => {
      const row = rowOf(test)
      if (row === undefined) return []
      return [atMost(`${row.title}, each call above C`, differenceBetween(row, 'driver', 'C') / calls, 80, ' ns')]
    }),
  ]
}

/** Measures some of the cases; on the software device without launches and without Python. */
export async function measureCalls(
  device: Device,
  options: RunOptions,
  wanted: readonly string[],
): Promise<CallFigures> {
  const calls = makeDriverCalls(device)
  const ptxFile = calls.kernels === undefined ? undefined : writeTemporary('empty.ptx', emptyKernels)
  const [c, readyLine] = await SubjectProcess.start('calls.c', compileWithCuda('calls.c'), [ptxFile ?? '-'])
  const python = ptxFile !== undefined && options.python ? await startPython(ptxFile) : undefined
  // The context is current on the thread, as it is in the C program.
  const inside = (loop: Loop, bursts: number): number =>
    device.primaryContext.run(() => timeOfCall(calls.stream, loop, bursts))
  const subjects: Subject[] = [
    subjectIn(c, 'C', readyLine.split(' ').slice(1), (test, bursts) => `${test} ${bursts} ${callsPerBurst}`),
    subjectOf('raw', rawLoops(calls), inside),
    subjectOf('driver', calls.loops, inside),
    subjectOf('prepared', calls.prepared, inside),
    // No context is current on the thread: each call makes that of its objects current and restores it.
    subjectOf('switching', calls.loops, (loop, bursts) => timeOfCall(calls.stream, loop, bursts)),
    ...(python?.subjects ?? []),
  ]
  const caseOf = (test: string): Case => ({ title: titles[test] ?? test, unit: 'ns', count: burstsPerLoop, loops: 5 })
  const rows = await takeTurns(
    Object.fromEntries(wanted.map((test) => [test, caseOf(test)])),
    subjects,
    options.rounds,
    compiled,
  )
  c.close()
  python?.close()
  calls.dispose()
  return { rows, names: subjects.map(({ name }) => name), python: python?.libraries ?? {} }
}

/** Prints the rows, and what Python cannot do of them. */
export function printCalls({ rows, names, python }: CallFigures): void {
  printRows(rows, names)
  printMissing(
    python,
    rows.map((row) => row.case),
  )
}

function must(status: CUresult): void {
  if (status !== 0) throw new Error(`a call of the CUDA driver failed with ${status}`)
}

/** The loops of `makeDriverCalls` through the raw package, on the same objects. */
function rawLoops({ stream: { handle: stream }, event: { handle: event }, from, to, kernels }: DriverCalls) {
  const [source, target] = [from.address as CUdeviceptr, to.address as CUdeviceptr]
  const allocated = NativeMemory.allocate(8)
  const current = NativeMemory.allocate(8)
  const loops: Record<string, Loop> = {
    copy: (count) => {
      for (let i = 0; i < count; i += 1) must(cuMemcpyDtoDAsync(target, source, copyBytes, stream))
    },
    fill: (count) => {
      for (let i = 0; i < count; i += 1) must(cuMemsetD8Async(target, 0, copyBytes, stream))
    },
    record: (count) => {
      for (let i = 0; i < count; i += 1) must(cuEventRecord(event, stream))
    },
    query: (count) => {
      for (let i = 0; i < count; i += 1) must(cuStreamQuery(stream))
    },
    pool: (count) => {
      for (let i = 0; i < count; i += 1) {
        must(cuMemAllocAsync(allocated, poolBytes, stream))
        must(cuMemFreeAsync(allocated.u64[0] as CUdeviceptr, stream))
      }
    },
    current: (count) => {
      for (let i = 0; i < count; i += 1) must(cuCtxGetCurrent(current))
    },
  }
  if (kernels === undefined) return loops
  const [f0, f4] = [kernels.empty0.handle, kernels.empty4.handle]
  // Four values of 8 bytes each, and the four addresses of them that C calls kernelParams.
  const block = NativeMemory.allocate(64)
  block.f32[0] = 2
  block.u64[1] = source
  block.u64[2] = target
  block.i32[6] = copyBytes / 4
  for (let i = 0; i < 4; i += 1) block.u64[4 + i] = block.address + BigInt(8 * i)
  const parameters = block.address + 32n
  loops['launch0'] = (count) => {
    for (let i = 0; i < count; i += 1) must(cuLaunchKernel(f0, 1, 1, 1, 32, 1, 1, 0, stream, null, null))
  }
  loops['launch4'] = (count) => {
    for (let i = 0; i < count; i += 1) must(cuLaunchKernel(f4, 1, 1, 1, 32, 1, 1, 0, stream, parameters, null))
    // Keeps the values alive until the last launch has read them.
    if (block.address === 0n) throw new Error('unreachable')
  }
  return loops
}
