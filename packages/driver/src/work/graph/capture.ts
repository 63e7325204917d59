import {
  type CUgraph,
  CUgraphEdgeData,
  type CUgraphNode,
  type CUstream,
  cuGraphDestroy,
  cuStreamBeginCapture,
  cuStreamBeginCaptureToGraph,
  cuStreamEndCapture,
  cuStreamGetCaptureInfo,
  cuStreamIsCapturing,
} from '@shoal/cuda-sys/driver'
import { callInContext } from '@shoal/ffi'
import {
  type OptionKeys,
  requireFunction,
  requireInstance,
  requireKeyOf,
  requireOptions,
  requireSynchronous,
  SymbolNotFoundError,
  VersionTooOldError,
} from '@shoal/types'
import { endCapturing, startCapturing } from '../../core/context/capturing.js'
import { check, Status } from '../../core/errors.js'
import { keepWhile } from '../../core/inUse.js'
import { scratch } from '../../core/native.js'
import { Stream } from '../../core/stream/stream.js'
import type { NodeResources } from './nodeResources.js'

/** Options of a capture. */
export interface CaptureOptions {
  /**
   * Calls that might disturb the capture, such as allocations and queries, can be refused by the driver. It refuses
   * such calls of this thread (`thread-local`), of all threads (`global`), or of no thread (`relaxed`). Default:
   * `thread-local`.
   */
  readonly mode?: 'global' | 'thread-local' | 'relaxed' | undefined
}

export const captureKeys: OptionKeys<CaptureOptions> = { mode: true }
export const captureModes = { global: 0, 'thread-local': 1, relaxed: 2 } as const
export const captureStatuses = ['none', 'active', 'invalidated'] as const

/** The existing graph to which a capture adds its nodes. */
interface Target {
  readonly handle: CUgraph
  readonly dependencies: readonly CUgraphNode[]
}

/**
 * Captures the work that `fn` queues and returns the graph. `resources` keeps the graph's functions. @throws errors of
 * `fn`; TypeError, DisposedError, StatusError
 */
export function capture(
  stream: Stream,
  fn: (stream: Stream) => void,
  options: CaptureOptions,
  api: string,
  resources: NodeResources,
  into?: Target,
): CUgraph {
  requireInstance(stream, api, 'stream', Stream)
  requireFunction(fn, api, 'fn')
  requireOptions(options, api, captureKeys)
  const mode = modeOf(options, api)
  const isStrict = mode !== 'relaxed'
  // Do this first: pending releases on another thread would invalidate the capture.
  startCapturing({
    needs: resources,
    isStrict,
    has: (context, other) => isSameCapture(stream, context, other as CUstream),
  })
  try {
    begin(stream, captureModes[mode], into)
  } catch (error) {
    endCapturing()
    throw error
  }
  // The stream's handle is needed at the end, even if `fn` disposes of the stream.
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  keepWhile([stream], released)
  let failure: { readonly error: unknown } | undefined
  try {
    requireSynchronous<unknown>(fn(stream), api)
  } catch (error) {
    failure = { error }
  }
  // End the capture even after an error, because a capturing stream is not usable.
  const { status, graph } = end(stream)
  release()
  if (failure !== undefined) {
    if (graph !== 0n && into === undefined) cuGraphDestroy(graph)
    throw failure.error
  }
  check(status, 'cuStreamEndCapture')
  return graph
}

function modeOf({ mode = 'thread-local' }: CaptureOptions, api: string): keyof typeof captureModes {
  requireKeyOf(mode, api, 'mode', captureModes)
  return mode
}

function begin(stream: Stream, mode: 0 | 1 | 2, into: Target | undefined): void {
  const { handle, context } = stream
  if (into === undefined) {
    context._callDriver('cuStreamBeginCapture', () => cuStreamBeginCapture(handle, mode))
  } else {
    const { length } = into.dependencies
    const nodes = length === 0 ? null : BigUint64Array.from(into.dependencies)
    const edges = length === 0 ? null : new Uint8Array(length * CUgraphEdgeData.size)
    context._callDriver('cuStreamBeginCaptureToGraph', () =>
      cuStreamBeginCaptureToGraph(handle, into.handle, nodes, edges, length, mode),
    )
  }
}

function end(stream: Stream): { readonly status: number; readonly graph: CUgraph } {
  const out = scratch()
  out.u64[0] = 0n
  let status: number = Status.success
  try {
    stream.context.run(() => {
      status = cuStreamEndCapture(stream._handle, out)
    })
    return { status, graph: out.u64[0] as CUgraph }
  } finally {
    endCapturing()
  }
}

/**
 * Whether two streams are captured into the same graph. Drivers before CUDA 12.3 cannot report it; assume true there.
 */
function isSameCapture(stream: Stream, context: bigint, other: CUstream): boolean {
  try {
    return captureIdOf(stream.context._handle, stream._handle) === captureIdOf(context, other)
  } catch (error) {
    if (error instanceof VersionTooOldError || error instanceof SymbolNotFoundError) return true
    throw error
  }
}

function captureIdOf(context: bigint, stream: CUstream): bigint {
  const out = scratch()
  const at = (index: number): bigint => out.address + BigInt(index * 8)
  callInContext(context)
  const status = cuStreamGetCaptureInfo(stream, out, at(1), at(2), at(3), at(4), at(5))
  check(status, 'cuStreamGetCaptureInfo')
  return out.u64[1] as bigint
}

/**
 * Returns the capture status of a stream (`cuStreamIsCapturing`): `none`, `active`, or `invalidated` after a call that
 * is forbidden during a capture. @throws TypeError, DisposedError, StatusError
 */
export function captureStatus(stream: Stream): 'none' | 'active' | 'invalidated' {
  requireInstance(stream, 'captureStatus', 'stream', Stream)
  const out = scratch()
  stream.context._callDriver('cuStreamIsCapturing', () => cuStreamIsCapturing(stream.handle, out))
  return captureStatuses[out.i32[0] as 0 | 1 | 2]
}
