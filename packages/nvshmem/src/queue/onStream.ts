import { isCapturing, isInCapture, keepCaptured } from '@shoal/driver/basics'
import { BusyError } from '@shoal/types'
import type { LiveSession } from './liveSession.js'

/** A call that is queued on a stream. */
export interface StreamCall {
  readonly api: string
  /** The handle of the stream. */
  readonly stream: bigint
  /** The stream as the program gave it. */
  readonly given: unknown
  readonly call: () => unknown
  /** Memory, and the team. */
  readonly uses: readonly unknown[]
  /** Throws for the status that `call` returned. */
  readonly check?: ((status: unknown) => void) | undefined
}

/**
 * Makes a call, now or in its turn. A graph that captures the call keeps what it uses. @throws what `call` and `check`
 * throw
 */
export function startOnStream(live: LiveSession, { api, stream, given, call, uses, check }: StreamCall): Promise<void> {
  const operands = [...uses, given]
  if (!isCapturing()) return live.queue.start(api, call, operands, check)
  requireNow(live, stream, api)
  const made = live.queue.start(api, call, operands, check)
  keepInGraphs(live, stream, uses)
  return made
}

/** Throws where a captured call would have to wait for its turn, which comes after the capture. @throws BusyError */
export function requireNow(live: LiveSession, stream: bigint, api: string): void {
  const { underWay } = live.queue
  if (underWay === undefined || !isInCapture(live.context, stream)) return
  throw new BusyError({ object: 'Session', api, underWay, hint: `await ${underWay} before the capture` })
}

/** Keeps what a call on a stream used while a graph that captured the call can launch. */
export function keepInGraphs(
  live: LiveSession,
  stream: bigint,
  uses: readonly unknown[],
  needs?: ReadonlyMap<object, () => void>,
): void {
  const own: [object, () => void] = [live, () => live.requireOpen('GraphExec.launch')]
  keepCaptured(live.context, stream, uses, new Map([...(needs ?? []), own]))
}
