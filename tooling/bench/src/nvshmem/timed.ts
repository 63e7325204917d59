import type { Answer } from '../ranks/serve.js'

/** Does the case `count` times, and waits for what it queued; one that returns a promise is awaited. */
export type Loop = (bytes: number, count: number) => void | Promise<void>

/** Answers `CASE BYTES ITERATIONS WARMUPS` with the microseconds of one. */
export function timed(loops: Readonly<Record<string, Loop>>): Answer {
  return async ([test = '', bytes, iterations, warmUps]) => {
    const loop = loops[test]
    if (loop === undefined) throw new Error(`no case ${test}`)
    await loop(Number(bytes), Number(warmUps))
    const count = Number(iterations)
    const start = process.hrtime.bigint()
    const pending = loop(Number(bytes), count)
    if (pending !== undefined) await pending
    return Number(process.hrtime.bigint() - start) / 1000 / count
  }
}
