import {
  type CUfunction,
  type CUstream,
  cuLaunchCooperativeKernel,
  cuOccupancyMaxActiveBlocksPerMultiprocessor,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import {
  type DType,
  describeValue,
  dtypeInfo,
  encodeArray,
  type HostValueOf,
  type MemoryLike,
  type StorageArray,
} from '@shoal/types'
import { requireOptions, requireWhole } from '../checks.js'
import { checkCuda } from '../errors.js'
import { bytesOf } from '../heap/hostCopies.js'
import { localAt, type StreamOperand, streamAt } from '../operands.js'
import type { LiveSession } from '../queue/liveSession.js'

/** One, two or three sizes; those left out are 1. */
export type Dimensions = number | readonly [x: number, y?: number, z?: number]

/** A kernel: an object with a `CUfunction`, such as a `Kernel` of `@shoal/driver`, or the bare handle. */
export type KernelLike = { readonly handle: bigint } | bigint

/** A parameter of the kernel: memory for a pointer, or a number of a type. */
export type LaunchParameter = MemoryLike | { readonly dtype: DType; readonly value: number | bigint | boolean }

/** The size of a collective launch, and its stream. */
export interface CollectiveLaunchOptions {
  /** Blocks in the grid; all of them have to fit onto the device at once. */
  readonly grid: Dimensions
  /** Threads in a block. */
  readonly block: Dimensions
  /** Bytes of dynamic shared memory a block. Default 0. */
  readonly sharedMemory?: number | undefined
  /** Stream it is queued on: a stream object, a bare `cudaStream_t`, or null for the default stream. */
  readonly stream: StreamOperand
}

const mostBlocks = 0x7fff_ffff

/**
 * Queues a kernel all of whose blocks run at once (`cuLaunchCooperativeKernel`): what kernels need that synchronize with
 * other PEs. The library's own `nvshmemx_collective_launch` is in no shared library; it does the same.
 */
export function launchCollectively(
  live: LiveSession,
  kernel: KernelLike,
  options: CollectiveLaunchOptions,
  parameters: readonly LaunchParameter[],
): void {
  const api = 'DeviceCode.launchCollectively'
  const handle = handleOf(kernel, api)
  requireOptions(options, api, '{ grid, block, stream, sharedMemory }')
  const grid = sizes(options.grid, 'grid', mostBlocks, api)
  const block = sizes(options.block, 'block', 1024, api)
  const shared = requireWhole(options.sharedMemory ?? 0, 'sharedMemory', 0, mostBlocks, api)
  if (!Array.isArray(parameters))
    throw new TypeError(`${api}: parameters must be a list, got ${describeValue(parameters)}`)
  const stream = streamAt(live, options.stream, api) as bigint as CUstream
  const packed = pack(live, parameters, api)
  try {
    live.queue.inContext(() => {
      checkCuda(
        cuLaunchCooperativeKernel(handle, ...grid, ...block, shared, stream, packed.addresses),
        'cuLaunchCooperativeKernel',
      )
    })
  } finally {
    // The driver has copied the parameters when the call returns.
    packed.memory.dispose()
  }
}

/** The most blocks of a kernel that a multiprocessor can hold at once (`cuOccupancyMaxActiveBlocksPerMultiprocessor`). */
export function blocksPerMultiprocessor(
  live: LiveSession,
  kernel: KernelLike,
  threads: number,
  sharedMemory: number,
): number {
  const api = 'DeviceCode.blocksPerMultiprocessor'
  const handle = handleOf(kernel, api)
  requireWhole(threads, 'threads', 1, 1024, api)
  requireWhole(sharedMemory, 'sharedMemory', 0, mostBlocks, api)
  const out = new Int32Array(1)
  live.queue.inContext(() => {
    const status = cuOccupancyMaxActiveBlocksPerMultiprocessor(out, handle, threads, sharedMemory)
    checkCuda(status, 'cuOccupancyMaxActiveBlocksPerMultiprocessor')
  })
  return out[0] ?? 0
}

function handleOf(kernel: unknown, api: string): CUfunction {
  const handle = typeof kernel === 'object' && kernel !== null ? (kernel as { handle?: unknown }).handle : kernel
  if (typeof handle === 'bigint' && handle > 0n && BigInt.asUintN(64, handle) === handle) return handle as CUfunction
  throw new TypeError(`${api}: kernel must have a handle (a CUfunction), got ${describeValue(kernel)}`)
}

function sizes(dimensions: Dimensions, name: string, most: number, api: string): [number, number, number] {
  const list: readonly unknown[] = typeof dimensions === 'number' ? [dimensions] : dimensions
  if (!Array.isArray(list) || list.length < 1 || list.length > 3) {
    throw new TypeError(`${api}: ${name} must be a number or one to three numbers, got ${describeValue(dimensions)}`)
  }
  return [0, 1, 2].map((axis) => requireWhole(list[axis] ?? 1, `${name}[${axis}]`, 1, most, api)) as [
    number,
    number,
    number,
  ]
}

/** The parameters one after the other, 16 bytes each, and their addresses before them. */
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
  if (typeof parameter !== 'object' || parameter === null) {
    throw new TypeError(`${api}: ${name} must be memory or { dtype, value }, got ${describeValue(parameter)}`)
  }
  if (!('value' in parameter)) {
    return bytesOf(BigUint64Array.of(localAt(live, parameter, api, name, false).address))
  }
  const { dtype, value } = parameter
  if (dtypeInfo(dtype).arrayEntries !== 1) throw new TypeError(`${api}: ${name} cannot be of ${dtype}`)
  return bytesOf(encodeArray(dtype, [value] as HostValueOf<DType>[]) as StorageArray)
}
