import { type StreamLike, streamMode, streamProtocol } from '@shoal/types'

/** What a call that names no stream has to look at. It is an object because bundles bind what they import once. */
export const missingStreams = {
  /**
   * True while a missing stream means the default stream and nobody wants to hear of it: the usual case, and the fast
   * one.
   */
  areDefault: process.env['SHOAL_DEFAULT_STREAM'] !== 'warn',
}

const warns = !missingStreams.areDefault
/** The streams of open scopes of this thread, the innermost last. */
const bound: StreamLike[] = []
/** Contexts with streams that the default stream does not wait for. */
const unordered = new Set<bigint>()
/** Calls that were warned of, by the line of the program. */
const told = new Set<string>()

/** Calls `fn` while work of the stream's context that names no stream goes to this stream. */
export function withBoundStream<T>(stream: StreamLike, fn: () => T): T {
  bound.push(stream)
  missingStreams.areDefault = false
  try {
    return fn()
  } finally {
    bound.pop()
    missingStreams.areDefault = bound.length === 0 && !warns
  }
}

/** Notes a stream that work on the default stream does not wait for, nor it for that work. */
export function noteStream(context: bigint, nonBlocking: boolean): void {
  if (warns && (nonBlocking || streamMode() === 'per-thread')) unordered.add(context)
}

/**
 * The stream of the innermost scope of a context; undefined for the default stream.
 * @throws DisposedError when the stream of the scope is gone
 */
export function boundStreamOf(context: bigint, api: string): StreamLike | undefined {
  for (let index = bound.length - 1; index >= 0; index -= 1) {
    const stream = bound[index] as StreamLike
    if (stream[streamProtocol].context === context) return stream
  }
  if (warns && unordered.has(context)) warnOnce(api)
  return undefined
}

/** Frames of the packages themselves. */
const ownFrame = /[\\/](?:@shoal|packages)[\\/][\w-]+[\\/]dist[\\/]/

function warnOnce(api: string): void {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 30
  const frames = (new Error().stack ?? '').split('\n').slice(1)
  Error.stackTraceLimit = stackTraceLimit
  const caller = frames.find((frame) => !ownFrame.test(frame))?.trim() ?? 'at an unknown place'
  if (told.has(`${api} ${caller}`)) return
  told.add(`${api} ${caller}`)
  process.emitWarning(
    `${api}: no stream was given, so the work goes to the default stream, which does not wait for the non-blocking streams of its device. ` +
      `Pass { stream }, or { stream: null } if the default stream is meant\n    ${caller}`,
    { type: 'ShoalStreamWarning' },
  )
}
