import { isCapturing, isInCapture, keepCaptured } from '@shoal/driver/basics'
import { BusyError } from '@shoal/types'
import type { LiveSession } from './liveSession.js'

/** A call to queue on a stream. */
export interface StreamCall {
  readonly api: string
  /** Handle of the stream. */
  readonly stream: bigint
  /** The stream argument of the program. */
  readonly given: unknown
  readonly call: () => unknown
  /** Memory and team of the call. */
  readonly uses: readonly unknown[]
  /** Throws for a failed status of `call`. */
  readonly check?: ((status: unknown) => void) | undefined
}

/**
 * Makes a call, now or in its turn. A captured graph keeps the objects of the call alive.
 *
 * @throws errors of `call` and `check`
 */
export function startOnStream(live: LiveSession, { api, stream, given, call, uses, check }: StreamCall): Promise<void> {
  const operands = [...uses, given]
  if (!isCapturing()) return live.queue.start(api, call, operands, check)
  requireNow(live, stream, api)
  const made = live.queue.start(api, call, operands, check)
  keepInGraphs(live, stream, uses)
  return made
}

/** Refuses a captured call that would have to wait, because its turn would come after the capture. @throws BusyError */
export function requireNow(live: LiveSession, stream: bigint, api: string): void {
  const { underWay } = live.queue
  if (underWay === undefined || !isInCapture(live.context, stream)) return
  throw new BusyError({ object: 'Session', api, underWay, hint: `await ${underWay} before the capture` })
}

/** Keeps the objects of a call on a stream alive while a graph that captured it can launch. */
export function keepInGraphs(
  live: LiveSession,
  stream: bigint,
  uses: readonly unknown[],
  needs?: ReadonlyMap<object, () => void>,
): void {
  const own: [object, () => void] = [live, () => live.requireOpen('GraphExec.launch')]
  keepCaptured(live.context, stream, uses, new Map([...(needs ?? []), own]))
}
