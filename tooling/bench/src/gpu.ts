import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type CUdeviceptr,
  type CUfunction,
  cuCtxGetCurrent,
  cuEventRecord,
  cuLaunchKernel,
  cuMemAllocAsync,
  cuMemcpyDtoDAsync,
  cuMemFreeAsync,
  cuStreamQuery,
} from '@shoal/cuda-sys/driver'
import { type Device, DeviceBuffer, driverVersion, type Kernel, Module } from '@shoal/driver'
import { NativeMemory } from '@shoal/ffi'
import { atMost } from './bars.js'
import { compile, cudaIncludeFolder } from './compile.js'
import { Contestant } from './contestant.js'
import { devicesFor, libraryPath } from './devices.js'
import type { Outcome, RunOptions } from './options.js'
import { type Case, type Entrant, printRows, type Row, takeTurns } from './turns.js'

// A burst fits the launch queue, so that what is timed is the call and not the wait for a free place in it.
const callsPerBurst = 200
const copyBytes = 1024
const poolBytes = 4096

const burstsPerLoop = 20
const titles: Readonly<Record<string, string>> = {
  launch0: 'cuLaunchKernel, no argument',
  launch4: 'cuLaunchKernel, 4 arguments',
  copy: 'cuMemcpyDtoDAsync, 1 KiB',
  record: 'cuEventRecord',
  query: 'cuStreamQuery',
  pool: 'cuMemAllocAsync + cuMemFreeAsync, 4 KiB',
  current: 'cuCtxGetCurrent',
}

/** What was found out about calls of the driver. */
export interface CallFigures {
  readonly rows: readonly Row[]
  readonly names: readonly string[]
  readonly peers: Peers
}

/** Calls of the CUDA driver: in C, through the raw package, through the driver package, and in Python. */
export async function benchGpu(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  const kernels = kernelFolder(options)
  const { rows, names, peers } = await measureCalls(device, kernels, options, Object.keys(titles))
  console.log('Calls of the CUDA driver (median of rounds, each the best of 5 loops), and the ratio to C\n')
  printRows(rows, names)
  printPeers(peers)
  const launch = rows.find((row) => row.case === 'launch4')
  const bars =
    launch === undefined
      ? []
      : [
          atMost(
            '4-argument launch through the driver package, ratio to C',
            launch.ratioToC['driver'] ?? Number.NaN,
            1.05,
          ),
        ]
  const details = {
    device: device.name,
    driverVersion: driverVersion().toString(),
    software: options.device === 'sim',
    callsPerBurst,
    peers,
  }
  return { results: { ...details, cases: rows }, bars }
}

/** Measures some of the cases. Without a folder of kernels there are no launches and no Python programs. */
export async function measureCalls(
  device: Device,
  kernels: string | undefined,
  options: RunOptions,
  wanted: readonly string[],
): Promise<CallFigures> {
  const include = cudaIncludeFolder()
  const library = libraryPath('cuda')
  const program = compile('calls.c', 'calls', [`-I${include}`, library, `-Wl,-rpath,${dirname(library)}`])
  const [c, ready] = await Contestant.start('calls.c', program, [kernels ?? '-'])
  const cCases = ready.split(' ').slice(1)
  const [python, peers] = kernels !== undefined && options.peers ? await startPeers(kernels) : [undefined, {}]
  const loops = prepare(device, kernels)
  const entrants: Entrant[] = [
    { name: 'C', cases: cCases, ask: (name, bursts) => c.ask(`${name} ${bursts} ${callsPerBurst}`) },
    {
      name: 'raw',
      cases: Object.keys(loops.raw),
      ask: (name, bursts) => inside(device, loops, loops.raw[name], bursts),
    },
    {
      name: 'driver',
      cases: Object.keys(loops.driver),
      ask: (name, bursts) => inside(device, loops, loops.driver[name], bursts),
    },
    {
      name: 'prepared',
      cases: Object.keys(loops.prepared),
      ask: (name, bursts) => inside(device, loops, loops.prepared[name], bursts),
    },
    {
      // No context is current on the thread, so that each call makes the buffers' current and takes it back.
      name: 'switching',
      cases: Object.keys(loops.driver),
      ask: (name, bursts) => burst(loops, loops.driver[name], bursts),
    },
    ...Object.entries(peers).flatMap(([name, peer]): Entrant[] =>
      'cases' in peer
        ? [
            {
              name,
              cases: peer.cases,
              ask: (test, bursts) => (python as Contestant).ask(`${name} ${test} ${bursts} ${callsPerBurst}`),
            },
          ]
        : [],
    ),
  ]
  const cases = Object.fromEntries(
    wanted.map((test) => [
      test,
      { title: titles[test] ?? test, unit: 'ns', count: burstsPerLoop, loops: 5 } satisfies Case,
    ]),
  )
  const rows = await takeTurns(cases, entrants, options.rounds)
  c.close()
  python?.close()
  loops.dispose()
  return { rows, names: entrants.map((entrant) => entrant.name), peers }
}

/** Says which Python programs are not there, and what those that are cannot do. */
export function printPeers(peers: Peers, cases: readonly string[] = Object.keys(titles)): void {
  for (const [name, peer] of Object.entries(peers)) {
    if ('missing' in peer) {
      console.log(`without ${name}: ${peer.missing}`)
      continue
    }
    for (const [test, reason] of Object.entries(peer.refused)) {
      if (cases.includes(test)) console.log(`without ${test} of ${name} ${peer.version}: ${reason}`)
    }
  }
}

type Loop = (calls: number) => void

interface Loops {
  readonly raw: Readonly<Record<string, Loop>>
  readonly driver: Readonly<Record<string, Loop>>
  readonly prepared: Readonly<Record<string, Loop>>
  readonly wait: () => void
  readonly dispose: () => void
}

function burst(loops: Loops, loop: Loop | undefined, bursts: number): number {
  if (loop === undefined) throw new Error('no such case')
  let nanoseconds = 0n
  for (let i = 0; i < bursts; i += 1) {
    const start = process.hrtime.bigint()
    loop(callsPerBurst)
    nanoseconds += process.hrtime.bigint() - start
    loops.wait()
  }
  return Number(nanoseconds) / (bursts * callsPerBurst)
}

/** With the context current on the thread, as it is in the C program. */
function inside(device: Device, loops: Loops, loop: Loop | undefined, bursts: number): number {
  return device.primaryContext.run(() => burst(loops, loop, bursts))
}

function must(status: number): void {
  if (status !== 0) throw new Error(`a call of the CUDA driver failed with ${status}`)
}

function prepare(device: Device, kernels: string | undefined): Loops {
  const stream = device.createStream({ nonBlocking: true })
  const event = device.createEvent()
  const from = DeviceBuffer.zeros(device, 'f32', copyBytes / 4)
  const to = DeviceBuffer.zeros(device, 'f32', copyBytes / 4)
  const [streamHandle, eventHandle] = [stream.handle, event.handle]
  const [source, target] = [from.address as CUdeviceptr, to.address as CUdeviceptr]
  const allocated = NativeMemory.allocate(8)
  const current = NativeMemory.allocate(8)
  const raw: Record<string, Loop> = {
    copy: (calls) => {
      for (let i = 0; i < calls; i += 1) must(cuMemcpyDtoDAsync(target, source, copyBytes, streamHandle))
    },
    record: (calls) => {
      for (let i = 0; i < calls; i += 1) must(cuEventRecord(eventHandle, streamHandle))
    },
    query: (calls) => {
      for (let i = 0; i < calls; i += 1) must(cuStreamQuery(streamHandle))
    },
    pool: (calls) => {
      for (let i = 0; i < calls; i += 1) {
        must(cuMemAllocAsync(allocated, poolBytes, streamHandle))
        must(cuMemFreeAsync(allocated.u64[0] as CUdeviceptr, streamHandle))
      }
    },
    current: (calls) => {
      for (let i = 0; i < calls; i += 1) must(cuCtxGetCurrent(current))
    },
  }
  const options = { stream }
  const driver: Record<string, Loop> = {
    copy: (calls) => {
      for (let i = 0; i < calls; i += 1) to.copyFrom(from, options)
    },
    record: (calls) => {
      for (let i = 0; i < calls; i += 1) stream.record(event)
    },
    query: (calls) => {
      for (let i = 0; i < calls; i += 1) stream.query()
    },
    pool: (calls) => {
      for (let i = 0; i < calls; i += 1) DeviceBuffer.allocateOn(stream, 'u8', poolBytes).disposeOn(stream)
    },
  }
  const prepared: Record<string, Loop> = {}
  let module: Module | undefined
  if (kernels !== undefined) {
    module = Module.loadSync(device, readFileSync(join(kernels, 'empty.ptx')))
    const empty0 = module.kernel('empty0', [])
    const empty4 = module.kernel('empty4', ['f32', 'ptr', 'ptr', 'i32'])
    Object.assign(raw, rawLaunches(empty0, empty4, streamHandle, source, target))
    const config = { grid: 1, block: 32, stream }
    driver['launch0'] = (calls) => {
      for (let i = 0; i < calls; i += 1) empty0.launch(config)
    }
    driver['launch4'] = (calls) => {
      for (let i = 0; i < calls; i += 1) empty4.launch(config, 2, from, to, copyBytes / 4)
    }
    const plan0 = empty0.prepare(config)
    const plan4 = empty4.prepare(config, 2, from, to, copyBytes / 4)
    prepared['launch0'] = (calls) => {
      for (let i = 0; i < calls; i += 1) plan0.launch()
    }
    prepared['launch4'] = (calls) => {
      for (let i = 0; i < calls; i += 1) plan4.launch()
    }
  }
  const dispose = (): void => {
    for (const object of [module, from, to, event, stream]) object?.dispose()
  }
  return { raw, driver, prepared, wait: () => void stream.synchronizeSync(), dispose }
}

function rawLaunches(
  empty0: Pick<Kernel<[]>, 'handle'>,
  empty4: Pick<Kernel<['f32', 'ptr', 'ptr', 'i32']>, 'handle'>,
  stream: Parameters<typeof cuLaunchKernel>[8],
  source: bigint,
  target: bigint,
): Record<string, Loop> {
  const [f0, f4]: CUfunction[] = [empty0.handle, empty4.handle]
  // Four values of 8 bytes each, and the four addresses of them that C calls kernelParams.
  const block = NativeMemory.allocate(64)
  block.f32[0] = 2
  block.u64[1] = source
  block.u64[2] = target
  block.i32[6] = copyBytes / 4
  for (let i = 0; i < 4; i += 1) block.u64[4 + i] = block.address + BigInt(8 * i)
  const parameters = block.address + 32n
  return {
    launch0: (calls) => {
      for (let i = 0; i < calls; i += 1)
        must(cuLaunchKernel(f0 as CUfunction, 1, 1, 1, 32, 1, 1, 0, stream, null, null))
    },
    launch4: (calls) => {
      for (let i = 0; i < calls; i += 1)
        must(cuLaunchKernel(f4 as CUfunction, 1, 1, 1, 32, 1, 1, 0, stream, parameters, null))
      // The values have to stay where they are until the last launch has read them.
      if (block.address === 0n) throw new Error('unreachable')
    },
  }
}

/** The folder with empty.ptx, where one is named. */
export function namedKernelFolder(): string | undefined {
  return process.env['SHOAL_KERNELS'] || undefined
}

function kernelFolder(options: RunOptions): string | undefined {
  const folder = namedKernelFolder()
  if (folder !== undefined) return folder
  if (options.device === 'sim') {
    console.log('without launches: SHOAL_KERNELS names no folder with empty.ptx\n')
    return undefined
  }
  throw new Error('SHOAL_KERNELS must name the folder with empty.ptx (kernels empty0 and empty4)')
}

type Peer =
  | { readonly version: string; readonly cases: readonly string[]; readonly refused: Readonly<Record<string, string>> }
  | { readonly missing: string }
export type Peers = Readonly<Record<string, Peer>>

async function startPeers(kernels: string): Promise<[Contestant | undefined, Peers]> {
  const script = fileURLToPath(new URL('../python/peers.py', import.meta.url))
  try {
    const [python, report] = await Contestant.start('peers.py', process.env['PYTHON'] || 'python3', [script, kernels])
    return [python, JSON.parse(report) as Peers]
  } catch (error) {
    return [undefined, { Python: { missing: (error as Error).message } }]
  }
}
