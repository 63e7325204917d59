import type { Stream } from '@shoal/driver'
import type { Party } from '../party.js'

/** Microseconds of one of `count` rounds of `work`, after warm-ups. */
export function timeOf(count: number, warmUps: number, work: (rounds: number) => void): number {
  if (warmUps > 0) work(warmUps)
  const start = process.hrtime.bigint()
  work(count)
  return Number(process.hrtime.bigint() - start) / 1000 / count
}

/** The mean over all PEs, none of which begins before the others are there. */
export async function meanTimeOf(
  party: Party,
  count: number,
  warmUps: number,
  work: (rounds: number) => void,
): Promise<number> {
  await party.collect([])
  const times = await party.collect([timeOf(count, warmUps, work)])
  return times.reduce((sum, value) => sum + value, 0) / times.length
}

/** Blocks until the stream is done: the end of what is timed, without a wake-up. */
export function drain(stream: Stream): void {
  stream.synchronizeSync()
}
