import { type CUresult, cuCtxGetCurrent } from '@shoal/cuda-sys/driver'
import { Device, DeviceBuffer, driverVersion, Module } from '@shoal/driver'
import { NativeMemory } from '@shoal/ffi'
import { UsageError } from '../command.js'
import type { BenchOptions } from './options.js'
import { type Column, figure, headLines, row } from './report/columns.js'
import { Output } from './report/output.js'
import { reportOf } from './report/report.js'

/** A row of the table of calls. */
export interface CallRow {
  readonly call: string
  /** Of one call, from its start to its return; the best of several loops. */
  readonly nanoseconds: number
}

const columns: readonly Column[] = [
  { head: 'call', unit: '', width: 52 },
  { head: 'time', unit: '(ns)', width: 10 },
]
// Fits the launch queue of a GPU, so that no call waits for a free place.
const callsPerLoop = 200
const copyBytes = 1024
const emptyKernel = `.version 6.4
.target sm_52
.address_size 64
.visible .entry empty(.param .u64 a, .param .u64 b, .param .u32 c) { ret; }
`

/** What calls cost that only queue something, with the context current and objects that are there. */
export async function benchCalls(options: BenchOptions): Promise<number> {
  const [device] = Device.all()
  if (device === undefined) throw new UsageError('there is no device')
  const output = await Output.open(options)
  const library = { name: 'CUDA driver', version: driverVersion().toString() }
  const one = { worldSize: 1, processes: 1 }
  output.print(
    ...(options.software ? ['# SOFTWARE DEVICE: its calls do other work than a GPU driver’s'] : []),
    `# shoal bench calls: ${device.name}, CUDA driver ${library.version}, Node ${process.version}`,
    '#',
    ...headLines(columns),
  )
  const rows = measure(device, options, (line) => output.print(row(columns, [line.call, figure(line.nanoseconds)])))
  await output.write(reportOf(one, library, rows, options), {
    title: 'calls that queue work',
    diagrams: [
      {
        title: 'time',
        unit: 'ns',
        logarithmic: false,
        names: rows.map(({ call }) => call),
        bars: [{ name: 'best of several loops', values: rows.map(({ nanoseconds }) => nanoseconds) }],
      },
    ],
  })
  return 0
}

function measure(device: Device, { iterations, warmUps }: BenchOptions, tell: (row: CallRow) => void): CallRow[] {
  const stream = device.createStream({ nonBlocking: true })
  const event = device.createEvent()
  const from = DeviceBuffer.zeros(device, 'u8', copyBytes)
  const to = DeviceBuffer.zeros(device, 'u8', copyBytes)
  const current = NativeMemory.allocate(8)
  const queued = { stream }
  const calls: [string, () => void][] = [
    ['raw cuCtxGetCurrent (nothing but the way into C)', () => void (cuCtxGetCurrent(current) satisfies CUresult)],
    ['stream.query()', () => void stream.query()],
    ['stream.record(event)', () => void stream.record(event)],
    [`buffer.copyFrom(other, { stream }), ${copyBytes} B`, () => void to.copyFrom(from, queued)],
    ['buffer.fill(0, { stream })', () => void to.fill(0, queued)],
    ['DeviceBuffer.allocateOn + disposeOn, 4 KiB', () => DeviceBuffer.allocateOn(stream, 'u8', 4096).disposeOn(stream)],
  ]
  // The software device runs no kernels.
  const module = device.isSoftware ? undefined : Module.loadSync(device, emptyKernel)
  if (module !== undefined) {
    const kernel = module.kernel('empty', ['ptr', 'ptr', 'i32'])
    const config = { grid: 1, block: 32, stream }
    const plan = kernel.prepare(config, from, to, 1)
    calls.push(['kernel.launch(config, 3 arguments)', () => kernel.launch(config, from, to, 1)])
    calls.push(['prepared launch()', () => plan.launch()])
  }
  try {
    return calls.map(([call, make]) => {
      const loop = (): number =>
        device.primaryContext.run(() => {
          const start = process.hrtime.bigint()
          for (let i = 0; i < callsPerLoop; i += 1) make()
          const nanoseconds = Number(process.hrtime.bigint() - start) / callsPerLoop
          stream.synchronizeSync()
          return nanoseconds
        })
      // V8 compiles what runs often.
      for (let i = 0; i < 50 + warmUps; i += 1) loop()
      const row = { call, nanoseconds: Math.min(...Array.from({ length: iterations }, loop)) }
      tell(row)
      return row
    })
  } finally {
    for (const object of [module, to, from, event, stream]) object?.dispose()
  }
}
