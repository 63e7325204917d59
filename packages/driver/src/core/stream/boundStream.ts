import { type StreamLike, streamMode, streamProtocol } from '@shoal/types'

/** How calls without a stream choose one. An object, because bundles copy an imported binding once. */
export const missingStreams = {
  /**
   * True while a missing stream means the default stream, without a warning. This is the usual case and the fast one.
   */
  areDefault: process.env['SHOAL_DEFAULT_STREAM'] !== 'warn',
}

const warns = !missingStreams.areDefault
/** Streams of this thread's open scopes, innermost last. */
const bound: StreamLike[] = []
/** Contexts with streams that do not synchronize with the default stream. */
const unordered = new Set<bigint>()
/** Calls that have caused a warning, by function and line of the program. */
const told = new Set<string>()

/** Calls `fn`. Meanwhile, work of the stream's context without a stream uses this stream. */
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

/** Registers a stream that does not synchronize with the default stream. */
export function noteStream(context: bigint, nonBlocking: boolean): void {
  if (warns && (nonBlocking || streamMode() === 'per-thread')) unordered.add(context)
}

/**
 * Returns the stream of the context's innermost scope; undefined for the default stream.
 * @throws DisposedError when the stream of the scope was disposed of
 */
export function boundStreamOf(context: bigint, api: string): StreamLike | undefined {
  for (let index = bound.length - 1; index >= 0; index -= 1) {
    const stream = bound[index] as StreamLike
    if (stream[streamProtocol].context === context) return stream
  }
  if (warns && unordered.has(context)) warnOnce(api)
  return undefined
}

/** Matches stack frames of the Shoal packages. */
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
