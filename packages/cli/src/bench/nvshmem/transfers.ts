import type { SymmetricBuffer } from '@shoal/nvshmem'
import { type BenchOptions, firstRunsOf } from '../options.js'
import { type Column, figure, row, wrongLine } from '../report/columns.js'
import { sizesOf } from '../size.js'
import { repeat, timeOf } from '../timing.js'
import type { NvshmemTest, Pe } from './pes.js'

/** A row of the table of put or get, from PE 0 to PE 1. */
export interface TransferRow {
  readonly bytes: number
  /** On a stream, each waited for; microseconds. */
  readonly latency: number
  /** On a stream, back to back; GB/s. */
  readonly bandwidth: number
  /** On a stream, back to back; millions a second. */
  readonly rate: number
  /** The blocking call from the host, and `quiet`; microseconds. */
  readonly hostLatency: number
  /** Wrong bytes; null where nothing was compared. */
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

/** Measures puts or gets between PE 0 and PE 1; the others wait. */
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
  const rows: TransferRow[] = []
  let failure: { readonly error: unknown } | undefined
  for (const bytes of sizesOf(options.sweep)) {
    const [own, other] = [here.slice(0, bytes), there.slice(0, bytes)]
    const queued = { pe: 1, stream }
    const queue = (): void => {
      // The session is idle, so the call is made at once and the promise only carries an error.
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
    if (options.check) await fill(session.pe, own, other)
    await session.barrierAll()
    if (session.pe === 0) {
      // The first one is awaited, so that its error is thrown here.
      await (kind === 'put' ? session.putOnStream(other, own, queued) : session.getOnStream(own, other, queued))
      await stream.synchronize({ timeout: options.timeout })
    }
    await session.barrierAll()
    const wrong = options.check ? await countWrong(kind, session.pe, own, other) : null
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
      // A call that failed took no time: the figures are worth nothing then.
      await new Promise((resolve) => setImmediate(resolve))
      if (failure !== undefined) throw failure.error
      const [bandwidth, rate] = [bytes / backToBack / 1000, 1 / backToBack]
      const row = { bytes, latency, bandwidth, rate, hostLatency, wrong: all }
      rows.push(row)
      onRow(row)
    }
    await session.barrierAll()
  }
  for (const buffer of [there, here]) await buffer.dispose()
  return rows
}

/** The contents of a PE's buffer; different for each buffer, so that a transfer that does nothing shows. */
function pattern(length: number, pe: number, buffer: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length)
  const first = Math.min(length, 65_521)
  for (let i = 0; i < first; i += 1) bytes[i] = (Math.imul(i + 1 + pe * 131 + buffer * 17, 0x9e37_79b1) >>> 24) & 0xff
  for (let filled = first; filled < length; filled *= 2) bytes.copyWithin(filled, 0, Math.min(filled, length - filled))
  return bytes
}

async function fill(pe: number, here: SymmetricBuffer<'u8'>, there: SymmetricBuffer<'u8'>): Promise<void> {
  await here.copyFrom(pattern(here.length, pe, 0))
  await there.copyFrom(pattern(there.length, pe, 1))
}

/** Compares what arrived: a put in `there` of PE 1, a get in `here` of PE 0. */
async function countWrong(
  kind: 'put' | 'get',
  pe: number,
  here: SymmetricBuffer<'u8'>,
  there: SymmetricBuffer<'u8'>,
): Promise<number> {
  if (pe !== (kind === 'put' ? 1 : 0)) return 0
  const found = await (kind === 'put' ? there : here).toArray()
  const wanted = kind === 'put' ? pattern(found.length, 0, 0) : pattern(found.length, 1, 1)
  if (Buffer.from(found.buffer, found.byteOffset, found.length).equals(wanted)) return 0
  let wrong = 0
  for (let i = 0; i < found.length; i += 1) if (found[i] !== wanted[i]) wrong += 1
  return wrong
}
