import type { DeviceLibraryName } from '../spec/types.js'

/**
 * How an unchecked function takes an argument:
 * - `halves`: an object with both halves of 64 bits.
 * - `words`: two numbers, the lower half and the upper half.
 * - `bigint`: a bigint.
 * - `count`: a number that is not negative.
 * - `number`: a number of at most 32 bits.
 * - `shape.gridX`: the field `gridX` of an object `shape`, a number of at most 32 bits or a bigint.
 * - two fields: the two numbers of `words`, in these fields.
 * - a constant: no argument; C always gets this number.
 */
export type Form = 'halves' | 'words' | 'bigint' | 'count' | 'number' | Path | readonly [Path, Path] | number
type Path = `${string}.${string}`

/** A function that hot paths call without checks. */
export interface UncheckedCall {
  readonly name: string
  /** Parameters with a form other than the default, which is `halves` for addresses and `count` for sizes. */
  readonly forms?: Readonly<Record<string, Form>>
  /** The first argument is the context for the call. */
  readonly inContext?: true
  /** The name of the generated function; defaults to the C name plus `Unchecked`. */
  readonly as?: string
}

/** The unchecked functions of a library. */
export interface UncheckedFile {
  readonly library: DeviceLibraryName
  /** Relative to `packages`. */
  readonly path: string
  readonly functions: readonly UncheckedCall[]
}

const launchShape = {
  gridDimX: 'shape.gridX',
  gridDimY: 'shape.gridY',
  gridDimZ: 'shape.gridZ',
  blockDimX: 'shape.blockX',
  blockDimY: 'shape.blockY',
  blockDimZ: 'shape.blockZ',
  sharedMemBytes: 'shape.sharedMemory',
} as const

const toDevice = { dstDevice: 'bigint' } as const
const collective = {
  sendbuff: 'given.source.address',
  recvbuff: 'given.target.address',
  datatype: 'given.type',
  comm: 'given.communicator',
  stream: 'given.queue.handle',
} as const
const count = ['given.count', 'given.countHigh'] as const
const op = 'given.op'

/** Each package gets the functions that it calls among its own sources. They are not part of a public API. */
export const uncheckedCalls: readonly UncheckedFile[] = [
  {
    library: 'driver',
    path: 'driver/src/core/calls/uncheckedCalls.gen.ts',
    functions: [
      { name: 'cuEventQuery', inContext: true, forms: { hEvent: 'bigint' } },
      { name: 'cuEventRecord', inContext: true, forms: { hEvent: 'bigint' } },
      { name: 'cuGraphAddNode', inContext: true, forms: { dependencyData: 0 } },
      { name: 'cuGraphLaunch', inContext: true },
      { name: 'cuLaunchKernel', inContext: true, forms: { ...launchShape, extra: 0 } },
      { name: 'cuLaunchKernelEx', inContext: true, forms: { extra: 0 } },
      { name: 'cuMemAllocAsync', inContext: true },
      { name: 'cuMemcpyDtoDAsync', inContext: true, forms: { ...toDevice, srcDevice: 'bigint' } },
      { name: 'cuMemcpyDtoHAsync', inContext: true, forms: { dstHost: 'words', srcDevice: 'bigint' } },
      { name: 'cuMemcpyHtoDAsync', inContext: true, forms: { ...toDevice, srcHost: 'words' } },
      { name: 'cuMemCreate', forms: { flags: 0 } },
      { name: 'cuMemFreeAsync', inContext: true, forms: { dptr: 'words' } },
      { name: 'cuMemMap', forms: { ptr: 'words', offset: 0, handle: 'words', flags: 0 } },
      { name: 'cuMemRelease', forms: { handle: 'words' } },
      { name: 'cuMemSetAccess', forms: { ptr: 'words' } },
      { name: 'cuMemsetD8Async', inContext: true, forms: toDevice },
      { name: 'cuMemsetD16Async', inContext: true, forms: toDevice },
      { name: 'cuMemsetD32Async', inContext: true, forms: toDevice },
      { name: 'cuMemUnmap', forms: { ptr: 'words' } },
    ],
  },
  {
    library: 'runtime',
    path: 'runtime/src/calls/uncheckedCalls.gen.ts',
    functions: [
      { name: 'cudaFreeAsync', inContext: true, forms: { devPtr: 'words' } },
      { name: 'cudaLaunchKernelExC', inContext: true },
      { name: 'cudaMallocAsync', inContext: true },
      // One function per direction: to the device, from the device, and derived from the addresses.
      {
        name: 'cudaMemcpyAsync',
        as: 'uploadUnchecked',
        inContext: true,
        forms: { dst: 'bigint', src: 'words', kind: 1 },
      },
      {
        name: 'cudaMemcpyAsync',
        as: 'downloadUnchecked',
        inContext: true,
        forms: { dst: 'words', src: 'bigint', kind: 2 },
      },
      {
        name: 'cudaMemcpyAsync',
        as: 'copyUnchecked',
        inContext: true,
        forms: { dst: 'bigint', src: 'bigint', kind: 4 },
      },
      { name: 'cudaMemsetAsync', inContext: true, forms: { devPtr: 'bigint' } },
    ],
  },
  {
    // The callers have already set the context.
    library: 'nccl',
    path: 'nccl/src/operations/uncheckedCalls.gen.ts',
    functions: [
      { name: 'ncclAllGather', forms: { ...collective, sendcount: count } },
      { name: 'ncclAllReduce', forms: { ...collective, count, op } },
      { name: 'ncclAlltoAll', forms: { ...collective, count } },
      { name: 'ncclReduceScatter', forms: { ...collective, recvcount: count, op } },
    ],
  },
]
