#!/usr/bin/env node
import { writeFileSync } from 'node:fs'
import { machineFacts, oneOf, parseCommandLine, UsageError, wholeNumber } from '@shoal/cli/bench'
import { printBars } from './bars.js'
import { NoDeviceError, type Outcome, type RunOptions } from './options.js'
import { repeatInProcesses } from './processRepeats.js'
import { SubjectProcess } from './subjectProcess.js'

const usage = `usage: shoal-bench COMMAND [options]

commands
  stub         calls of a library that does nothing: C, Shoal, koffi
  short-calls  methods of the driver package on a driver that does nothing, and the same calls in C
  gpu          calls of the CUDA driver: C, raw Shoal, the driver package, Python bindings
  costs        what a program waits for, awaited and blocking: C, Shoal, Python libraries; a server on the same event loop
  graphs       graphs, launches with attributes and structs, many copies at once: C and the driver package
  captured-step
               kernels and an all-reduce on two devices, captured in a graph and call by call: C and Shoal
  compile      a kernel's source: NVRTC alone, compile, and its caches; the event loop meanwhile
  kernels      kernels of the software device (--device sim): arithmetic, axpy, a product of matrices, the load of a module; C
  gpt          steps of the example gpt, on one device and on two: C and TypeScript with the same kernels
  memory       memory mapped, grown, allocated on streams, copied and shared: C, Shoal, Python bindings
  nccl         all-reduce, all-gather, reduce-scatter, all-to-all of 8 B to 1 GiB on all devices, in one process and in
               one a rank: C and Shoal with the same libnccl
  nvshmem      puts and gets of 8 B to 256 MiB, barriers and atomics: C and Shoal with the same libnvshmem_host
  ranks        ranks from the start of their processes to the first all-reduce: C and Shoal
  import       time, memory and libraries of import '@shoal/driver'
  sys          raw packages: import, binding, memory, type-checks, packed sizes
  event-loop   delay of the event loop while a stream is awaited
  never-blocks a timer beside loops of awaits, and dispose() of every kind of object while a kernel runs
  event-loop-ranks
               delay of the event loop of a rank while it waits for a late one

options
  --json FILE      writes the figures as JSON
  --rounds N       rounds, in which the subjects take turns (default: 7)
  --processes N    all of it in N processes, one after the other, and the rounds of all together (default: 1)
  --device WHICH   gpu (default) or sim; sim shows that the code runs, its figures mean nothing
  --devices N      nccl, nvshmem, ranks: number of devices (default: all)
  --max-bytes N    nccl, nvshmem: largest message (default: 1 GiB, 256 MiB; 1 MiB on the software device)
  --only A,B       nccl: only these operations; process, processes: only in one process, only in one a rank
                   nvshmem: only put-get, barrier, host, atomics
  --wait-seconds N event-loop-ranks: seconds that the other rank is late (default: 10)
  --no-python      gpu, memory: without the Python bindings
  --spec FOLDER    sys: the specs of the raw packages (default: those of tooling/bindgen)
  --check          exit status 1 when a bar is missed

environment
  PYTHON                the Python with the bindings (default: python3; gpu, memory)
  SHOAL_NCCL_LIBRARY    the libnccl that both sides use (nccl)
  SHOAL_NVSHMEM_LIBRARY the libnvshmem_host that both sides use (nvshmem)
  CUDA_HOME             toolkit with cuda.h (gpu, memory, nccl, nvshmem, ranks)
  CC, CXX               the compilers for C and C++ (default: gcc, g++)`

type Command = (options: RunOptions) => Promise<Outcome>

// Each is loaded on demand, so that no command needs the libraries of another.
const commands: { readonly [name: string]: () => Promise<Command> } = {
  stub: async () => (await import('./stub.js')).benchStub,
  'short-calls': async () => (await import('./shortCalls.js')).benchShortCalls,
  costs: async () => (await import('./costs/index.js')).benchCosts,
  gpu: async () => (await import('./gpu.js')).benchGpu,
  graphs: async () => (await import('./graphs.js')).benchGraphs,
  'captured-step': async () => (await import('./capturedStep.js')).benchCapturedStep,
  compile: async () => (await import('./compileTimes/index.js')).benchCompile,
  kernels: async () => (await import('./softwareKernels.js')).benchSoftwareKernels,
  gpt: async () => (await import('./gpt/index.js')).benchGpt,
  memory: async () => (await import('./memory/index.js')).benchMemory,
  nccl: async () => (await import('./nccl/index.js')).benchNccl,
  nvshmem: async () => (await import('./nvshmem/index.js')).benchNvshmem,
  ranks: async () => (await import('./start/index.js')).benchRanks,
  import: async () => (await import('./sys/importCost.js')).benchImport,
  sys: async () => (await import('./sys/index.js')).benchSys,
  'event-loop': async () => (await import('./eventLoop.js')).benchEventLoop,
  'never-blocks': async () => (await import('./neverBlocks.js')).benchNeverBlocks,
  'event-loop-ranks': async () => (await import('./eventLoopRanks/index.js')).benchEventLoopRanks,
}

const flags = {
  json: { type: 'string' },
  rounds: { type: 'string', default: '7' },
  processes: { type: 'string', default: '1' },
  device: { type: 'string', default: 'gpu' },
  devices: { type: 'string' },
  'max-bytes': { type: 'string', default: String(2 ** 30) },
  only: { type: 'string' },
  'wait-seconds': { type: 'string', default: '10' },
  spec: { type: 'string' },
  'no-python': { type: 'boolean' },
  check: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

async function main(): Promise<number> {
  const { values, positionals } = parseCommandLine(process.argv.slice(2), flags)
  const [name, ...rest] = positionals
  if (values.help === true || name === undefined) {
    console.log(usage)
    return values.help === true ? 0 : 2
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (load === undefined) throw new UsageError(`unknown command ${name}`)
  if (rest.length > 0) throw new UsageError(`unexpected ${rest.join(' ')}`)
  const device = oneOf(values.device, '--device', ['gpu', 'sim'])
  // Set before any package reads it.
  if (device === 'sim') {
    process.env['SHOAL_DEVICE'] = 'sim'
    if (values.devices !== undefined) process.env['SHOAL_SIM_DEVICES'] = values.devices
  }
  const options: RunOptions = {
    device,
    rounds: wholeNumber(values.rounds, '--rounds', 1),
    devices: values.devices === undefined ? undefined : wholeNumber(values.devices, '--devices', 1),
    python: values['no-python'] !== true,
    specFolder: values.spec,
    maximumBytes: wholeNumber(values['max-bytes'], '--max-bytes', 8),
    only: values.only?.split(','),
    waitSeconds: wholeNumber(values['wait-seconds'], '--wait-seconds', 1),
  }
  const processes = wholeNumber(values.processes, '--processes', 1)
  const run = await load()
  const { results, bars } =
    processes === 1 ? await run(options) : repeatInProcesses([name, ...wordsOf(values)], processes)
  printBars(bars)
  if (values.json !== undefined) {
    const [date, node] = [new Date().toISOString(), process.version]
    const report = {
      command: name,
      date,
      node,
      machine: machineFacts(),
      options: { ...options, processes },
      results,
      bars,
    }
    writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`)
  }
  return values.check === true && bars.some((bar) => !bar.met) ? 1 : 0
}

/** The options for a process that runs a part of the benchmark. */
function wordsOf({
  json,
  processes,
  check,
  ...values
}: Readonly<Record<string, string | boolean | undefined>>): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  )
}

main().then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    SubjectProcess.closeAll()
    if (error instanceof UsageError) console.error(`shoal-bench: ${error.message}\n\n${usage}`)
    else if (error instanceof NoDeviceError) console.error(`shoal-bench: ${error.message}`)
    else console.error(error)
    process.exitCode = 2
  },
)
