import {
  CUDA_BATCH_MEM_OP_NODE_PARAMS,
  CUDA_KERNEL_NODE_PARAMS,
  CUDA_MEM_ALLOC_NODE_PARAMS,
  CUDA_MEMCPY3D,
  CUDA_MEMSET_NODE_PARAMS,
  type CUfunction,
  type CUkernel,
  CUmemorytype,
  cuFuncGetName,
  cuGraphBatchMemOpNodeGetParams,
  cuGraphEventRecordNodeGetEvent,
  cuGraphEventWaitNodeGetEvent,
  cuGraphKernelNodeGetParams,
  cuGraphMemAllocNodeGetParams,
  cuGraphMemcpyNodeGetParams,
  cuGraphMemFreeNodeGetParams,
  cuGraphMemsetNodeGetParams,
  cuKernelGetName,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { requireInstance, VersionTooOldError, withJson } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { check } from '../../core/errors.js'
import { readCString, scratch } from '../../core/native.js'
import type { Graph } from './graph.js'
import { GraphNode } from './graphNode.js'
import type { GraphNodeType } from './nodeTypes.js'

type Three = readonly [x: number, y: number, z: number]

/** One side of a copy in a graph: an address or a `CUarray`. Positions are in bytes, rows and slices. */
export interface CopyEnd {
  /** Whether `handle` is an array's handle instead of an address. */
  readonly isArray: boolean
  /** The address, or the `CUarray`. */
  readonly handle: bigint
  /** Start within a row, in bytes. */
  readonly x: number
  /** Index of the first row. */
  readonly y: number
  /** Index of the first slice. */
  readonly z: number
  /** Distance between rows of memory in bytes; 0 for rows without gaps. */
  readonly pitch: number
  /** Number of rows per slice of memory. */
  readonly rows: number
}

/** A node's work as the driver reports it. For unlisted kinds, only the kind. */
export type NodeParameters =
  | {
      readonly type: 'kernel'
      /** Name of the kernel in its image; undefined before CUDA 12.3, which does not report it. */
      readonly name: string | undefined
      readonly grid: Three
      readonly block: Three
      /** Dynamic shared memory in bytes. */
      readonly sharedMemory: number
    }
  | {
      readonly type: 'memcpy'
      readonly source: CopyEnd
      readonly target: CopyEnd
      /** Bytes per row, rows, and slices. */
      readonly extent: Three
    }
  | {
      readonly type: 'memset'
      readonly address: bigint
      /** Bits written to each element. */
      readonly value: number
      /** Size of an element in bytes: 1, 2 or 4. */
      readonly elementBytes: number
      /** Elements per row. */
      readonly width: number
      readonly height: number
      /** Distance between rows in bytes. */
      readonly pitch: number
    }
  | {
      readonly type: 'graph'
      /** The inner graph, which ends with the outer graph. */
      readonly graph: Graph
    }
  | { readonly type: 'event-record' | 'wait-event'; readonly eventHandle: bigint }
  | { readonly type: 'mem-alloc'; readonly address: bigint; readonly byteLength: number }
  | { readonly type: 'mem-free'; readonly address: bigint }
  | { readonly type: 'batch-mem-op'; readonly count: number }
  | {
      readonly type: Exclude<
        GraphNodeType,
        | 'kernel'
        | 'memcpy'
        | 'memset'
        | 'graph'
        | 'event-record'
        | 'wait-event'
        | 'mem-alloc'
        | 'mem-free'
        | 'batch-mem-op'
      >
    }

/**
 * Returns a node's work, also for captured nodes (`cuGraphKernelNodeGetParams` and related functions). Does not return
 * a kernel's arguments, because CUDA stores their bytes without types.
 * @throws TypeError, DisposedError, StatusError
 *
 * @example
 * for (const node of graph.nodes) console.log(nodeParameters(node))
 */
export function nodeParameters(node: GraphNode): NodeParameters {
  requireInstance(node, 'nodeParameters', 'node', GraphNode as never)
  return withJson(readParameters(node))
}

function readParameters(node: GraphNode): NodeParameters {
  const { type, handle, graph } = node
  const ask = (api: string, size: number, get: (out: NativeMemory) => number): NativeMemory => {
    const out = NativeMemory.allocate(size)
    check(get(out), api)
    return out
  }
  const handleOf = (api: string, get: (out: NativeMemory) => number): bigint => ask(api, 8, get).u64[0] as bigint
  switch (type) {
    case 'kernel': {
      const out = ask('cuGraphKernelNodeGetParams', CUDA_KERNEL_NODE_PARAMS.size, (memory) =>
        cuGraphKernelNodeGetParams(handle, memory),
      )
      const found = CUDA_KERNEL_NODE_PARAMS.read(out)
      return {
        type,
        name: nameOf(graph.context, found),
        grid: [found.gridDimX, found.gridDimY, found.gridDimZ],
        block: [found.blockDimX, found.blockDimY, found.blockDimZ],
        sharedMemory: found.sharedMemBytes,
      }
    }
    case 'memcpy': {
      const out = ask('cuGraphMemcpyNodeGetParams', CUDA_MEMCPY3D.size, (memory) =>
        cuGraphMemcpyNodeGetParams(handle, memory),
      )
      const { WidthInBytes, Height, Depth, ...ends } = CUDA_MEMCPY3D.read(out)
      const extent = [Number(WidthInBytes), Number(Height), Number(Depth)] as const
      return { type, source: endOf(ends, 'src'), target: endOf(ends, 'dst'), extent }
    }
    case 'memset': {
      const out = ask('cuGraphMemsetNodeGetParams', CUDA_MEMSET_NODE_PARAMS.size, (memory) =>
        cuGraphMemsetNodeGetParams(handle, memory),
      )
      const { dst, pitch, value, elementSize, width, height } = CUDA_MEMSET_NODE_PARAMS.read(out)
      const rows = { width: Number(width), height: Number(height), pitch: Number(pitch) }
      return { type, address: dst, value, elementBytes: elementSize, ...rows }
    }
    case 'graph':
      return { type, graph: graph._childOf(node) }
    case 'event-record':
      return {
        type,
        eventHandle: handleOf('cuGraphEventRecordNodeGetEvent', (out) => cuGraphEventRecordNodeGetEvent(handle, out)),
      }
    case 'wait-event':
      return {
        type,
        eventHandle: handleOf('cuGraphEventWaitNodeGetEvent', (out) => cuGraphEventWaitNodeGetEvent(handle, out)),
      }
    case 'mem-alloc': {
      const out = ask('cuGraphMemAllocNodeGetParams', CUDA_MEM_ALLOC_NODE_PARAMS.size, (memory) =>
        cuGraphMemAllocNodeGetParams(handle, memory),
      )
      const { dptr, bytesize } = CUDA_MEM_ALLOC_NODE_PARAMS.read(out)
      return { type, address: dptr, byteLength: Number(bytesize) }
    }
    case 'mem-free':
      return {
        type,
        address: handleOf('cuGraphMemFreeNodeGetParams', (out) => cuGraphMemFreeNodeGetParams(handle, out)),
      }
    case 'batch-mem-op': {
      const out = ask('cuGraphBatchMemOpNodeGetParams', CUDA_BATCH_MEM_OP_NODE_PARAMS.size, (memory) =>
        cuGraphBatchMemOpNodeGetParams(handle, memory),
      )
      return { type, count: CUDA_BATCH_MEM_OP_NODE_PARAMS.read(out).count }
    }
    default:
      return { type }
  }
}

/** Returns the name of a kernel of a module or a library. */
function nameOf(context: Context, { func, kern }: CUDA_KERNEL_NODE_PARAMS): string | undefined {
  const out = scratch()
  try {
    if (func !== 0n) context._callDriver('cuFuncGetName', () => cuFuncGetName(out, func as CUfunction))
    else context._callDriver('cuKernelGetName', () => cuKernelGetName(out, kern as CUkernel))
  } catch (error) {
    if (error instanceof VersionTooOldError) return undefined
    throw error
  }
  return readCString(out.u64[0] as bigint) ?? undefined
}

type Ends = Omit<CUDA_MEMCPY3D, 'WidthInBytes' | 'Height' | 'Depth'>

function endOf(ends: Ends, side: 'src' | 'dst'): CopyEnd {
  const of = <K extends string>(name: K): bigint => ends[`${side}${name}` as keyof Ends] as bigint
  const type = ends[`${side}MemoryType`]
  const isArray = type === CUmemorytype.CU_MEMORYTYPE_ARRAY
  const isHost = type === CUmemorytype.CU_MEMORYTYPE_HOST
  return {
    isArray,
    handle: isArray ? of('Array') : isHost ? of('Host') : of('Device'),
    x: Number(of('XInBytes')),
    y: Number(of('Y')),
    z: Number(of('Z')),
    pitch: Number(of('Pitch')),
    rows: Number(of('Height')),
  }
}
