import {
  CUgraphEdgeData,
  type CUstreamUpdateCaptureDependencies_flags,
  cuStreamGetCaptureInfo,
  cuStreamUpdateCaptureDependencies,
  cuThreadExchangeStreamCaptureMode,
} from '@shoal/cuda-sys/driver'
import { readMemory } from '@shoal/ffi'
import {
  type OptionKeys,
  requireFunction,
  requireInstance,
  requireKeyOf,
  requireList,
  requireOptions,
  requireSynchronous,
  withJson,
} from '@shoal/types'
import { setRelaxed } from '../../core/context/capturing.js'
import { check } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { Stream } from '../../core/stream/stream.js'
import { captureModes, captureStatuses } from './capture.js'
import { GraphNode } from './graphNode.js'

/** A capture from the view of one of its streams. */
export interface CaptureInfo {
  /** `invalidated` after a forbidden call: the capture will fail. */
  readonly status: 'active' | 'invalidated'
  /** Unique number of the capture in this process; 0 for an invalidated capture. */
  readonly id: bigint
  /** The growing `CUgraph`; 0 for an invalidated capture. */
  readonly graphHandle: bigint
  /** Nodes before the work that is queued next, as values of `GraphNode.handle`. */
  readonly dependencyHandles: readonly bigint[]
}

/** Options of {@link setCaptureDependencies}. */
export interface CaptureDependencyOptions {
  /** Whether to replace (`set`) or extend (`add`) the current dependencies. Default: `'set'`. */
  readonly mode?: 'set' | 'add' | undefined
}

const dependencyKeys: OptionKeys<CaptureDependencyOptions> = { mode: true }
const flags = { add: 0, set: 1 } as const
const handleBytes = 8

/**
 * Returns the capture of a stream; undefined if the stream is not captured (`cuStreamGetCaptureInfo`).
 * @throws TypeError, DisposedError, StatusError; VersionTooOldError before CUDA 12.3
 */
export function captureInfo(stream: Stream): CaptureInfo | undefined {
  requireInstance(stream, 'captureInfo', 'stream', Stream)
  const { handle } = stream
  const out = scratch()
  const at = (index: number): bigint => out.address + BigInt(index * handleBytes)
  stream.context._callDriver('cuStreamGetCaptureInfo', () =>
    cuStreamGetCaptureInfo(handle, out, at(1), at(2), at(3), at(4), at(5)),
  )
  const status = captureStatuses[out.i32[0] as 0 | 1 | 2]
  if (status === 'none') return undefined
  if (status === 'invalidated') return withJson({ status, id: 0n, graphHandle: 0n, dependencyHandles: [] })
  const [id, graphHandle, nodes, count] = [1, 2, 3, 5].map((index) => out.u64[index] as bigint) as [
    bigint,
    bigint,
    bigint,
    bigint,
  ]
  const bytes = count === 0n ? new Uint8Array(0) : readMemory(nodes, Number(count) * handleBytes)
  return withJson({
    status,
    id,
    graphHandle,
    dependencyHandles: [...new BigUint64Array(bytes.buffer, bytes.byteOffset, Number(count))],
  })
}

/**
 * Sets the nodes that the next work of a captured stream waits for (`cuStreamUpdateCaptureDependencies`). This connects
 * nodes that were added explicitly with captured ones.
 * @throws TypeError; DisposedError; StatusError for a stream that is not captured, and for nodes of another graph;
 * VersionTooOldError before CUDA 12.3
 *
 * @example
 * graph.capture(stream, () => {
 *   kernel.launch({ grid: 8, block: 256, stream }, x)
 *   const clear = graph.add(fillNode(sums, 0))
 *   setCaptureDependencies(stream, [clear], { mode: 'add' })
 *   sum.launch({ grid: 8, block: 256, stream }, x, sums)
 * })
 */
export function setCaptureDependencies(
  stream: Stream,
  nodes: readonly GraphNode[],
  options: CaptureDependencyOptions = {},
): void {
  const api = 'setCaptureDependencies'
  requireInstance(stream, api, 'stream', Stream)
  const list = requireList(nodes, api, 'nodes', 'an array of nodes').map((node, index) => {
    return requireInstance<GraphNode>(node, api, `nodes[${index}]`, GraphNode as never).handle
  })
  const { mode = 'set' } = requireOptions(options, api, dependencyKeys)
  const flag = requireKeyOf(mode, api, 'mode', flags) as CUstreamUpdateCaptureDependencies_flags
  const { handle } = stream
  const handles = list.length === 0 ? null : BigUint64Array.from(list)
  const edges = list.length === 0 ? null : new Uint8Array(list.length * CUgraphEdgeData.size)
  stream.context._callDriver('cuStreamUpdateCaptureDependencies', () =>
    cuStreamUpdateCaptureDependencies(handle, handles, edges, list.length, flag),
  )
}

/**
 * Runs `fn` with another capture mode of this thread, then restores the previous mode
 * (`cuThreadExchangeStreamCaptureMode`). With `relaxed`, `fn` can allocate memory while a stream is captured.
 * @param fn a synchronous function
 * @throws errors of `fn`; TypeError, StatusError
 */
export function withCaptureMode<R>(mode: 'global' | 'thread-local' | 'relaxed', fn: () => R): R {
  const api = 'withCaptureMode'
  requireKeyOf(mode, api, 'mode', captureModes)
  requireFunction(fn, api, 'fn')
  const before = exchange(captureModes[mode])
  const wasRelaxed = setRelaxed(mode === 'relaxed')
  try {
    return requireSynchronous(fn(), api)
  } finally {
    setRelaxed(wasRelaxed)
    exchange(before)
  }
}

function exchange(mode: number): number {
  const out = scratch()
  out.i32[0] = mode
  check(cuThreadExchangeStreamCaptureMode(out), 'cuThreadExchangeStreamCaptureMode')
  return out.i32[0] as number
}
