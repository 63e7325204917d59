import {
  type CUfunction,
  type CUstream,
  cuLaunchCooperativeKernel,
  cuOccupancyMaxActiveBlocksPerMultiprocessor,
} from '@shoal/cuda-sys/driver'
import { bytesOf, isCapturing } from '@shoal/driver/basics'
import { NativeMemory } from '@shoal/ffi'
import {
  type DType,
  dtypeInfo,
  encodeArray,
  type HostValueOf,
  isArray,
  isRevoked,
  type MemoryLike,
  type OptionKeys,
  requireInteger,
  requireOptions,
  type StorageArray,
  wrongType,
} from '@shoal/types'
import { checkCuda } from '../errors.js'
import { localAt, type StreamOperand, streamAt } from '../operands.js'
import type { LiveSession } from '../queue/liveSession.js'
import { keepInGraphs } from '../queue/onStream.js'
import { handleOf } from './handles.js'

/** Sizes in one, two or three dimensions; missing sizes are 1. */
export type Dimensions = number | readonly [x: number, y?: number, z?: number]

/** A kernel: an object with a `CUfunction`, such as a `Kernel` of `@shoal/driver`, or the handle. */
export type KernelLike = { readonly handle: bigint } | bigint

/** A kernel parameter: memory for a pointer, or a number with its type. */
export type LaunchParameter = MemoryLike | { readonly dtype: DType; readonly value: number | bigint | boolean }

/** Size and stream of a collective launch. */
export interface CollectiveLaunchOptions {
  /** Blocks in the grid; all of them must fit on the device at the same time. */
  readonly grid: Dimensions
  /** Threads per block. */
  readonly block: Dimensions
  /** Bytes of dynamic shared memory per block. Default: 0. */
  readonly sharedMemory?: number | undefined
  /**
   * Stream to queue on: a stream object, a bare `cudaStream_t`, or null for the default stream. Default: the stream of
   * `Stream.use`, else the default stream.
   */
  readonly stream?: StreamOperand | undefined
}

const launchKeys: OptionKeys<CollectiveLaunchOptions> = { grid: true, block: true, stream: true, sharedMemory: true }

const mostBlocks = 0x7fff_ffff
const mostThreads = 1024

/**
 * Launches a kernel whose blocks all run at the same time (`cuLaunchCooperativeKernel`).
 *
 * Such a kernel can wait for other PEs.
 *
 * NVSHMEM's `nvshmemx_collective_launch` does the same, but no shared library contains it.
 */
export function launchCollectively(
  live: LiveSession,
  kernel: KernelLike,
  options: CollectiveLaunchOptions,
  parameters: readonly LaunchParameter[],
): void {
  const api = 'DeviceCode.launchCollectively'
  const handle = handleOf(kernel, api, 'kernel', 'CUfunction') as CUfunction
  requireOptions(options, api, launchKeys)
  const grid = sizes(options.grid, 'grid', mostBlocks, api)
  const block = sizes(options.block, 'block', mostThreads, api)
  const shared = requireInteger(options.sharedMemory ?? 0, api, 'sharedMemory', 0, mostBlocks)
  const packed = pack(live, parameters, api)
  try {
    const stream = streamAt(live, options.stream, api, ...parameters) as bigint as CUstream
    live.queue.inContext(() => {
      checkCuda(
        cuLaunchCooperativeKernel(handle, ...grid, ...block, shared, stream, packed.addresses),
        'cuLaunchCooperativeKernel',
      )
    })
    if (isCapturing()) {
      const needs = typeof kernel === 'object' ? new Map([[kernel, () => void kernel.handle]]) : undefined
      keepInGraphs(live, stream, parameters, needs)
    }
  } finally {
    // The driver has copied the parameters when the call returns.
    packed.memory.dispose()
  }
}

/** Returns how many blocks of a kernel fit on a multiprocessor (`cuOccupancyMaxActiveBlocksPerMultiprocessor`). */
export function blocksPerMultiprocessor(
  live: LiveSession,
  kernel: KernelLike,
  threads: number,
  sharedMemory: number,
): number {
  const api = 'DeviceCode.blocksPerMultiprocessor'
  const handle = handleOf(kernel, api, 'kernel', 'CUfunction') as CUfunction
  requireInteger(threads, api, 'threads', 1, mostThreads)
  requireInteger(sharedMemory, api, 'sharedMemory', 0, mostBlocks)
  const out = new Int32Array(1)
  live.queue.inContext(() => {
    const status = cuOccupancyMaxActiveBlocksPerMultiprocessor(out, handle, threads, sharedMemory)
    checkCuda(status, 'cuOccupancyMaxActiveBlocksPerMultiprocessor')
  })
  return out[0] ?? 0
}

function sizes(dimensions: Dimensions, name: string, most: number, api: string): [number, number, number] {
  const list: readonly unknown[] = typeof dimensions === 'number' ? [dimensions] : dimensions
  if (!isArray(list) || list.length < 1 || list.length > 3) {
    throw wrongType(api, name, 'a number or one to three numbers', dimensions)
  }
  return [0, 1, 2].map((axis) =>
    requireInteger(list[axis] === undefined && axis > 0 ? 1 : list[axis], api, `${name}[${axis}]`, 1, most),
  ) as [number, number, number]
}

/** Writes the addresses of the parameters, followed by the parameters, 16 bytes each. */
function pack(
  live: LiveSession,
  parameters: readonly LaunchParameter[],
  api: string,
): { readonly memory: NativeMemory; readonly addresses: bigint } {
  const memory = NativeMemory.allocate(Math.max(24 * parameters.length, 8))
  const valuesAt = 8 * parameters.length
  try {
    for (const [index, parameter] of parameters.entries()) {
      const at = valuesAt + 16 * index
      memory.u64[index] = memory.address + BigInt(at)
      memory.bytes.set(parameterBytes(live, parameter, `parameters[${index}]`, api), at)
    }
  } catch (error) {
    memory.dispose()
    throw error
  }
  return { memory, addresses: memory.address }
}

function parameterBytes(live: LiveSession, parameter: LaunchParameter, name: string, api: string): Uint8Array {
  if (typeof parameter !== 'object' || parameter === null || isRevoked(parameter)) {
    throw wrongType(api, name, 'memory or { dtype, value }', parameter)
  }
  if (!('value' in parameter)) {
    return bytesOf(BigUint64Array.of(localAt(live, parameter, api, name, false).address))
  }
  const { dtype, value } = parameter
  if (dtypeInfo(dtype).arrayEntries !== 1) throw new TypeError(`${api}: ${name} cannot be of ${dtype}`)
  return bytesOf(encodeArray(dtype, [value] as HostValueOf<DType>[]) as StorageArray)
}
