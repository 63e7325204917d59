import { type Device, DeviceBuffer, type Stream } from '@shoal/driver'
import type { SymmetricBuffer } from '@shoal/nvshmem'
import { type BenchOptions, firstRunsOf } from '../options.js'
import { PatternKernels } from '../patternKernels.js'
import { type Column, figure, row, wrongLine } from '../report/columns.js'
import { sizesOf } from '../size.js'
import { repeat, timeOf } from '../timing.js'
import type { NvshmemTest, Pe } from './pes.js'

/** A row of the table of put or get, between PE 0 and PE 1. */
export interface TransferRow {
  readonly bytes: number
  /** On a stream with a wait after each, in microseconds. */
  readonly latency: number
  /** On a stream, back to back, in GB/s. */
  readonly bandwidth: number
  /** On a stream, back to back, in millions per second. */
  readonly rate: number
  /** Blocking host call with `quiet`, in microseconds. */
  readonly hostLatency: number
  /** Wrong bytes; null without a check. */
  readonly wrong: number | null
}

const columns: readonly Column[] = [
  { head: 'size', unit: '(B)', width: 12 },
  { head: 'latency', unit: '(us)', width: 10 },
  { head: 'bandwidth', unit: '(GB/s)', width: 10 },
  { head: 'rate', unit: '(Mops/s)', width: 10 },
  { head: 'host lat.', unit: '(us)', width: 10 },
  { head: '#wrong', unit: '(bytes)', width: 8 },
]

/** Measures puts or gets between PE 0 and PE 1; the other PEs wait. */
export function transferTest(kind: 'put' | 'get'): NvshmemTest {
  return {
    columns,
    async run(pe, options, output) {
      const rows = await measure(kind, pe, options, (one) => output.print(lineOf(one)))
      const wrong = options.check ? rows.reduce((sum, one) => sum + (one.wrong ?? 0), 0) : null
      output.print(wrongLine('bytes', wrong))
      const line = (name: string, pick: (one: TransferRow) => number) => ({
        name,
        points: rows.map((one) => [one.bytes, pick(one)] as const),
      })
      const bandwidths = [line('on a stream, back to back', (one) => one.bandwidth)]
      const latencies = [
        line('on a stream, each awaited', (one) => one.latency),
        line('from the host, blocking', (one) => one.hostLatency),
      ]
      const diagrams = [
        { title: 'bandwidth', unit: 'GB/s', logarithmic: false, lines: bandwidths },
        { title: 'latency', unit: 'µs', logarithmic: true, lines: latencies },
      ]
      await output.write(rows, { title: `${kind} between 2 PEs`, diagrams }, { wrong })
      return wrong === null || wrong === 0 ? 0 : 1
    },
  }
}

function lineOf({ bytes, latency, bandwidth, rate, hostLatency, wrong }: TransferRow): string {
  const figures = [latency, bandwidth, rate, hostLatency].map(figure)
  return row(columns, [String(bytes), ...figures, wrong === null ? 'N/A' : String(wrong)])
}

async function measure(
  kind: 'put' | 'get',
  { rankGroup, session, stream }: Pe,
  options: BenchOptions,
  onRow: (row: TransferRow) => void,
): Promise<TransferRow[]> {
  const here = await session.allocate('u8', options.sweep.most)
  const there = await session.allocate('u8', options.sweep.most)
  const data = options.check ? new TransferData(rankGroup.ranks[0]?.device as Device, stream) : undefined
  const rows: TransferRow[] = []
  let failure: { readonly error: unknown } | undefined
  for (const bytes of sizesOf(options.sweep)) {
    const [own, other] = [here.slice(0, bytes), there.slice(0, bytes)]
    const queued = { pe: 1, stream }
    const queue = (): void => {
      // The session is idle, so the call is made immediately and the promise only reports errors.
      const made = kind === 'put' ? session.putOnStream(other, own, queued) : session.getOnStream(own, other, queued)
      made.catch((error: unknown) => {
        failure ??= { error }
      })
    }
    const once = (): void => {
      if (kind === 'put') session.putSync(other, own, { pe: 1 })
      else session.getSync(own, other, { pe: 1 })
      session.quietSync()
    }
    await data?.fill(session.pe, own, other)
    await session.barrierAll()
    if (session.pe === 0) {
      // Await the first call, so that its error is thrown here.
      await (kind === 'put' ? session.putOnStream(other, own, queued) : session.getOnStream(own, other, queued))
      await stream.synchronize({ timeout: options.timeout })
    }
    await session.barrierAll()
    const wrong = data === undefined ? null : await data.countWrong(kind, session.pe, own, other)
    const all = wrong === null ? null : await rankGroup.sum(wrong)
    if (session.pe === 0) {
      const { iterations } = options
      const warmUps = options.warmUps + (rows.length === 0 ? firstRunsOf(bytes) : 0)
      const wait = (): void => void stream.synchronizeSync()
      const queueAndWait = (): void => {
        queue()
        wait()
      }
      const latency = timeOf(iterations, warmUps, repeat(queueAndWait))
      const backToBack = timeOf(iterations, warmUps, repeat(queue, wait))
      const hostLatency = timeOf(iterations, warmUps, repeat(once))
      // A failed call takes no time, so the figures would be meaningless.
      await new Promise((resolve) => setImmediate(resolve))
      if (failure !== undefined) throw failure.error
      const [bandwidth, rate] = [bytes / backToBack / 1000, 1 / backToBack]
      const row = { bytes, latency, bandwidth, rate, hostLatency, wrong: all }
      rows.push(row)
      onRow(row)
    }
    await session.barrierAll()
  }
  data?.dispose()
  for (const buffer of [there, here]) await buffer.dispose()
  return rows
}

/** Bytes after which the contents of a buffer repeat. */
const period = 65_521

/** Returns the contents of a PE's buffer. Each buffer differs, so that a transfer without effect is detected. */
function pattern(pe: number, buffer: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: period }, (_, i) => Math.imul(i + 1 + pe * 131 + buffer * 17, 0x9e37_79b1) >>> 24)
}

/** Makes and checks a PE's data with kernels on its device. */
class TransferData {
  readonly #device: Device
  readonly #stream: Stream
  readonly #kernels: PatternKernels

  constructor(device: Device, stream: Stream) {
    this.#device = device
    this.#stream = stream
    this.#kernels = new PatternKernels(device, stream, period)
  }

  async fill(pe: number, here: SymmetricBuffer<'u8'>, there: SymmetricBuffer<'u8'>): Promise<void> {
    for (const [index, buffer] of [here, there].entries()) this.#kernels.fill(this.#view(buffer), pattern(pe, index))
    await this.#stream.synchronize()
  }

  /** Compares received data: a put in `there` of PE 1, a get in `here` of PE 0. */
  async countWrong(
    kind: 'put' | 'get',
    pe: number,
    here: SymmetricBuffer<'u8'>,
    there: SymmetricBuffer<'u8'>,
  ): Promise<number> {
    if (pe !== (kind === 'put' ? 1 : 0)) return 0
    const [found, wanted] = kind === 'put' ? [there, pattern(0, 0)] : [here, pattern(1, 1)]
    return await this.#kernels.countDifferent(this.#view(found), wanted)
  }

  #view(buffer: SymmetricBuffer<'u8'>): DeviceBuffer<'u8'> {
    return DeviceBuffer.view(this.#device, buffer, 'u8')
  }

  dispose(): void {
    this.#kernels.dispose()
  }
}
