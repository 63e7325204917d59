import { type CUresult, cuCtxGetCurrent } from '@shoal/cuda-sys/driver'
import { Device, driverVersion } from '@shoal/driver'
import { NativeMemory } from '@shoal/ffi'
import { UsageError } from '../command.js'
import { copyBytes, makeDriverCalls, poolBytes, timeOfCall } from './driverCalls.js'
import type { BenchOptions } from './options.js'
import { type Column, figure, headLines, row } from './report/columns.js'
import { Output } from './report/output.js'
import type { Loop } from './timing.js'

/** A row of the table of driver calls. */
export interface CallRow {
  readonly call: string
  /** Time of one call, from its start to its return; the best of several loops. */
  readonly nanoseconds: number
}

const columns: readonly Column[] = [
  { head: 'call', unit: '', width: 52 },
  { head: 'time', unit: '(ns)', width: 10 },
]

/** Measures calls that only queue work, in the current context with objects made beforehand. */
export async function benchCalls(options: BenchOptions): Promise<number> {
  const [device] = Device.all()
  if (device === undefined) throw new UsageError('there is no device')
  const library = { name: 'CUDA driver', version: driverVersion().toString() }
  const output = await Output.open({ worldSize: 1, processes: 1, isFirst: true }, library, options, headLines(columns))
  const rows = measure(device, options, (line) => output.print(row(columns, [line.call, figure(line.nanoseconds)])))
  const names = rows.map(({ call }) => call)
  const bars = [{ name: 'best of several loops', values: rows.map(({ nanoseconds }) => nanoseconds) }]
  await output.write(rows, {
    title: 'calls that queue work',
    diagrams: [{ title: 'time', unit: 'ns', names, bars }],
  })
  return 0
}

function measure(device: Device, { iterations, warmUps }: BenchOptions, onRow: (row: CallRow) => void): CallRow[] {
  const { stream, loops, prepared, dispose } = makeDriverCalls(device)
  const current = NativeMemory.allocate(8)
  const calls: readonly (readonly [string, Loop | undefined])[] = [
    [
      'raw cuCtxGetCurrent (nothing but the way into C)',
      (count) => {
        for (let i = 0; i < count; i += 1) cuCtxGetCurrent(current) satisfies CUresult
      },
    ],
    ['stream.query()', loops['query']],
    ['stream.record(event)', loops['record']],
    [`buffer.copyFrom(other, { stream }), ${copyBytes} B`, loops['copy']],
    ['buffer.fill(0, { stream })', loops['fill']],
    [`DeviceBuffer.allocateOn + disposeOn, ${poolBytes / 1024} KiB`, loops['pool']],
    ['kernel.launch(config)', loops['launch0']],
    ['kernel.launch(config, 4 arguments)', loops['launch4']],
    ['prepared launch()', prepared['launch4']],
  ]
  try {
    return calls.flatMap(([call, loop]) => {
      if (loop === undefined) return []
      const once = (): number => device.primaryContext.run(() => timeOfCall(stream, loop, 1))
      // V8 compiles functions that run often.
      for (let i = 0; i < 50 + warmUps; i += 1) once()
      const row = { call, nanoseconds: Math.min(...Array.from({ length: iterations }, once)) }
      onRow(row)
      return row
    })
  } finally {
    dispose()
  }
}
