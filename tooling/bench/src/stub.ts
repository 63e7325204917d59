import { type Loop, timeOf } from '@shoal/cli/bench'
import { defineLibrary } from '@shoal/ffi'
import {
  type NativeCall,
  type PointerArgument,
  putHandle,
  putPointer,
  putSize,
  putU32,
  type SizeArgument,
  slots32,
  slots64,
} from '@shoal/ffi/calls'
import { atMost, type Bar } from './bars.js'
import { compile } from './compile.js'
import { loopInC } from './loopInC.js'
import type { Outcome, RunOptions } from './options.js'
import { type Case, printRows, ratioBetween, subjectOf, takeTurns } from './turns.js'

const callsPerLoop = 200_000
const loopsPerRound = 5

const stub = defineLibrary({
  id: 'bench-stub',
  title: 'the stub library of the benchmark',
  environment: 'SHOAL_BENCH_STUB_LIBRARY',
  linux: ['libstub.so'],
  hint: 'It is built by the benchmark itself.',
})

// In the style of bindgen's output.

let stub0_: NativeCall | undefined
function stub0(): number {
  return (stub0_ ??= stub.bind('stub0', 0, 0))()
}

let stub4_: NativeCall | undefined
function stub4(destination: bigint, source: bigint, bytes: SizeArgument, stream: bigint | null): number {
  putHandle(0, destination, 'stub4', 'destination')
  putHandle(1, source, 'stub4', 'source')
  putSize(2, bytes, 'stub4', 'bytes')
  putHandle(3, stream, 'stub4', 'stream')
  return (stub4_ ??= stub.bind('stub4', 0, 4))()
}

let stub11_: NativeCall | undefined
function stub11(
  f: bigint | null,
  gridX: number,
  gridY: number,
  gridZ: number,
  blockX: number,
  blockY: number,
  blockZ: number,
  shared: number,
  stream: bigint | null,
  parameters: PointerArgument,
  extra: PointerArgument,
): number {
  putHandle(0, f, 'stub11', 'f')
  putU32(1, gridX, 'stub11', 'gridX')
  putU32(2, gridY, 'stub11', 'gridY')
  putU32(3, gridZ, 'stub11', 'gridZ')
  putU32(4, blockX, 'stub11', 'blockX')
  putU32(5, blockY, 'stub11', 'blockY')
  putU32(6, blockZ, 'stub11', 'blockZ')
  putU32(7, shared, 'stub11', 'shared')
  putHandle(8, stream, 'stub11', 'stream')
  putPointer(9, parameters, 'stub11', 'parameters')
  putPointer(10, extra, 'stub11', 'extra')
  return (stub11_ ??= stub.bind('stub11', 0, 11))()
}

/** The same call with the arguments written directly to the block, as the driver package does in kernel launches. */
function block11(
  f: bigint,
  gridX: number,
  gridY: number,
  gridZ: number,
  blockX: number,
  blockY: number,
  blockZ: number,
  shared: number,
  queue: bigint,
  parameters: bigint,
): number {
  const call = (stub11_ ??= stub.bind('stub11', 0, 11))
  slots64[0] = f
  slots32[2] = gridX
  slots32[4] = gridY
  slots32[6] = gridZ
  slots32[8] = blockX
  slots32[10] = blockY
  slots32[12] = blockZ
  slots32[14] = shared
  slots64[8] = queue
  slots64[9] = parameters
  slots64[10] = 0n
  return call()
}

const first = 0x7f0000001000n
const second = 0x7f0000002000n
const stream = 0x55550000n

/** The sum of all arguments of each call. */
const sums = { stub4: first + second + 1024n + stream, stub11: first + 28n + stream + second } as const

const titles = {
  stub0: 'no argument',
  stub4: '4 arguments',
  block11: '11 arguments, unchecked',
  stub11: '11 arguments',
} as const
type Test = keyof typeof titles

/** Calls of a library whose functions do nothing, to measure the cost of the call itself. */
export async function benchStub(options: RunOptions): Promise<Outcome> {
  const path = compile('stub.c', ['-shared', '-fPIC'])
  stub.setPath(path)
  const time = (loop: Loop, count: number): number => timeOf(count, 0, loop) * 1000
  const subjects = [
    subjectOf('C', cLoops(), (loop, count) => loop(count)),
    subjectOf('shoal', shoalLoops, time),
    subjectOf('koffi', await koffiLoops(path), time),
  ]
  const cases = Object.entries(titles).map(([test, title]): [string, Case] => [
    test,
    { title, unit: 'ns', count: callsPerLoop, loops: loopsPerRound },
  ])
  const rows = await takeTurns(Object.fromEntries(cases), subjects, options.rounds)
  console.log('Calls of a stub library (median of rounds, each the best of its loops), and the ratio to C\n')
  printRows(rows, ['C', 'shoal', 'koffi'])
  const bars = rows.flatMap((row): Bar[] => [
    atMost(`${row.title}, through the block`, row.subjects['shoal']?.median ?? Number.NaN, 35, ' ns'),
    ...(row.case.endsWith('11')
      ? [atMost(`${row.title}, share of koffi's time`, ratioBetween(row, 'shoal', 'koffi'), 1 / 3)]
      : []),
  ])
  return { results: rows, bars }
}

let stubSum: (() => bigint) | undefined

/** Throws unless all calls succeeded and the stub received all arguments of the last call. */
function requireDone(failures: number, sum: bigint | undefined): void {
  if (failures !== 0) throw new Error(`${failures} calls of the stub failed`)
  stubSum ??= stub.bindBig('stub_sum', 0, 0, 'u64')
  if (sum !== undefined && stubSum() !== sum) throw new Error('the arguments did not arrive whole')
}

const shoalLoops: Readonly<Record<Test, Loop>> = {
  stub0: (count) => {
    let failures = 0
    for (let i = 0; i < count; i += 1) failures += stub0()
    requireDone(failures, undefined)
  },
  stub4: (count) => {
    let failures = 0
    for (let i = 0; i < count; i += 1) failures += stub4(first, second, 1024, stream)
    requireDone(failures, sums.stub4)
  },
  block11: (count) => {
    let failures = 0
    for (let i = 0; i < count; i += 1) failures += block11(first, 1, 2, 3, 4, 5, 6, 7, stream, second)
    requireDone(failures, sums.stub11)
  },
  stub11: (count) => {
    let failures = 0
    for (let i = 0; i < count; i += 1) failures += stub11(first, 1, 2, 3, 4, 5, 6, 7, stream, second, null)
    requireDone(failures, sums.stub11)
  },
}

async function koffiLoops(path: string): Promise<Readonly<Record<Test, Loop>>> {
  const { default: koffi } = await import('koffi')
  const library = koffi.load(path)
  // Handles are 64-bit integers, so that koffi gets the same bigints.
  const koffi0 = library.func('int stub0()')
  const koffi4 = library.func('int stub4(uint64_t d, uint64_t s, size_t n, uint64_t q)')
  const koffi11 = library.func(
    'int stub11(uint64_t f, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t g, uint32_t h, uint64_t s, uint64_t p, uint64_t x)',
  )
  const loop11: Loop = (count) => {
    let failures = 0
    for (let i = 0; i < count; i += 1) failures += koffi11(first, 1, 2, 3, 4, 5, 6, 7, stream, second, 0)
    requireDone(failures, sums.stub11)
  }
  return {
    stub0: (count) => {
      let failures = 0
      for (let i = 0; i < count; i += 1) failures += koffi0()
      requireDone(failures, undefined)
    },
    stub4: (count) => {
      let failures = 0
      for (let i = 0; i < count; i += 1) failures += koffi4(first, second, 1024, stream)
      requireDone(failures, sums.stub4)
    },
    block11: loop11,
    stub11: loop11,
  }
}

/** Loops that run in C, in this process. Each returns the nanoseconds per call. */
function cLoops(): Readonly<Record<Test, (count: number) => number>> {
  return {
    stub0: loopInC(stub, 'loop0'),
    stub4: loopInC(stub, 'loop4'),
    block11: loopInC(stub, 'loop11'),
    stub11: loopInC(stub, 'loop11'),
  }
}
