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
import { atMost, type Bar, number, table } from './bars.js'
import { compile } from './compile.js'
import type { Outcome, RunOptions } from './options.js'
import { medianRatio, series } from './statistics.js'

const callsPerLoop = 200_000
const loopsPerRound = 5

const stub = defineLibrary({
  id: 'bench-stub',
  title: 'the stub library of the benchmark',
  environment: 'SHOAL_BENCH_STUB_LIBRARY',
  linux: ['libstub.so'],
  hint: 'It is built by the benchmark itself.',
})

// The same shape as the functions of a generated package.

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

/** The same call with the arguments written straight to the block, as the driver package launches kernels. */
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

/** Sum of all arguments, as the stub sees them. */
const sums = { stub4: first + second + 1024n + stream, stub11: first + 28n + stream + second } as const

type Loop = () => number

/** Times `callsPerLoop` calls; nanoseconds a call. */
function timed(body: (count: number) => number): Loop {
  return () => {
    const start = process.hrtime.bigint()
    const failures = body(callsPerLoop)
    const nanoseconds = Number(process.hrtime.bigint() - start)
    if (failures !== 0) throw new Error(`${failures} calls of the stub failed`)
    return nanoseconds / callsPerLoop
  }
}

interface Case {
  readonly name: string
  readonly argumentCount: number
  readonly loops: { readonly C: Loop; readonly shoal: Loop; readonly koffi: Loop }
}

async function cases(path: string): Promise<Case[]> {
  stub.setPath(path)
  const { default: koffi } = await import('koffi')
  const library = koffi.load(path)
  // Handles as 64-bit integers, so that koffi takes the same bigints.
  const koffi0 = library.func('int stub0()')
  const koffi4 = library.func('int stub4(uint64_t d, uint64_t s, size_t n, uint64_t q)')
  const koffi11 = library.func(
    'int stub11(uint64_t f, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t g, uint32_t h, uint64_t s, uint64_t p, uint64_t x)',
  )
  const sum = stub.bindBig('stub_sum', 0, 0, 'u64')
  const arrived = (name: keyof typeof sums, call: () => unknown): void => {
    call()
    if (sum() !== sums[name]) throw new Error(`${name}: the arguments did not arrive whole`)
  }
  arrived('stub4', () => stub4(first, second, 1024, stream))
  arrived('stub4', () => koffi4(first, second, 1024, stream))
  arrived('stub11', () => stub11(first, 1, 2, 3, 4, 5, 6, 7, stream, second, null))
  arrived('stub11', () => block11(first, 1, 2, 3, 4, 5, 6, 7, stream, second))
  arrived('stub11', () => koffi11(first, 1, 2, 3, 4, 5, 6, 7, stream, second, 0))
  return [
    {
      name: 'no argument',
      argumentCount: 0,
      loops: {
        C: inC('loop0'),
        shoal: timed((count) => {
          let failures = 0
          for (let i = 0; i < count; i += 1) failures += stub0()
          return failures
        }),
        koffi: timed((count) => {
          let failures = 0
          for (let i = 0; i < count; i += 1) failures += koffi0()
          return failures
        }),
      },
    },
    {
      name: '4 arguments',
      argumentCount: 4,
      loops: {
        C: inC('loop4'),
        shoal: timed((count) => {
          let failures = 0
          for (let i = 0; i < count; i += 1) failures += stub4(first, second, 1024, stream)
          return failures
        }),
        koffi: timed((count) => {
          let failures = 0
          for (let i = 0; i < count; i += 1) failures += koffi4(first, second, 1024, stream)
          return failures
        }),
      },
    },
    {
      name: '11 arguments, unchecked',
      argumentCount: 11,
      loops: {
        C: inC('loop11'),
        shoal: timed((count) => {
          let failures = 0
          for (let i = 0; i < count; i += 1) failures += block11(first, 1, 2, 3, 4, 5, 6, 7, stream, second)
          return failures
        }),
        koffi: timed((count) => {
          let failures = 0
          for (let i = 0; i < count; i += 1) failures += koffi11(first, 1, 2, 3, 4, 5, 6, 7, stream, second, 0)
          return failures
        }),
      },
    },
    {
      name: '11 arguments',
      argumentCount: 11,
      loops: {
        C: inC('loop11'),
        shoal: timed((count) => {
          let failures = 0
          for (let i = 0; i < count; i += 1) failures += stub11(first, 1, 2, 3, 4, 5, 6, 7, stream, second, null)
          return failures
        }),
        koffi: timed((count) => {
          let failures = 0
          for (let i = 0; i < count; i += 1) failures += koffi11(first, 1, 2, 3, 4, 5, 6, 7, stream, second, 0)
          return failures
        }),
      },
    },
  ]
}

/** A loop that runs in C, in this process; only its start goes through us. */
function inC(name: string): Loop {
  const call = stub.bind(name, 0, 2)
  const nanoseconds = new Float64Array(1)
  return () => {
    putSize(0, callsPerLoop, name, 'n')
    putPointer(1, nanoseconds, name, 'nanoseconds')
    call()
    return (nanoseconds[0] ?? Number.NaN) / callsPerLoop
  }
}

function bestOf(loop: Loop): number {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < loopsPerRound; i += 1) best = Math.min(best, loop())
  return best
}

/** Calls of a library whose functions do nothing: what is left is the way there and back. */
export async function benchStub(options: RunOptions): Promise<Outcome> {
  const library = compile('stub.c', 'libstub.so', ['-shared', '-fPIC'])
  const list = await cases(library)
  const results = []
  const bars: Bar[] = []
  for (const { name, argumentCount, loops } of list) {
    const rounds = { C: [] as number[], shoal: [] as number[], koffi: [] as number[] }
    for (const loop of Object.values(loops)) loop()
    for (let round = 0; round < options.rounds; round += 1) {
      rounds.C.push(bestOf(loops.C))
      rounds.shoal.push(bestOf(loops.shoal))
      rounds.koffi.push(bestOf(loops.koffi))
    }
    const toKoffi = medianRatio(rounds.shoal, rounds.koffi)
    const shoal = series(rounds.shoal)
    results.push({
      case: name,
      unit: 'ns a call',
      C: series(rounds.C),
      shoal,
      koffi: series(rounds.koffi),
      shoalToKoffi: toKoffi,
    })
    bars.push(atMost(`${name}, through the block`, shoal.median, 35, ' ns'))
    if (argumentCount === 11) bars.push(atMost(`${name}, share of koffi's time`, toKoffi, 1 / 3))
  }
  console.log('Calls of a stub library, ns a call (median of rounds, each the best of its loops)\n')
  console.log(
    table(
      ['', 'C', 'Shoal', 'koffi', 'Shoal − C', 'Shoal / koffi'],
      results.map((row) => [
        row.case,
        number(row.C.median),
        number(row.shoal.median),
        number(row.koffi.median),
        number(row.shoal.median - row.C.median),
        number(row.shoalToKoffi),
      ]),
    ),
  )
  return { results, bars }
}
