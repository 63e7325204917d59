import {
  CUDA_MEMCPY3D,
  CUDA_MEMCPY3D_PEER,
  CUmemorytype,
  type CUstream,
  cuMemcpy3DAsync,
  cuMemcpy3DPeerAsync,
} from '@shoal/cuda-sys/driver'
import type { Context } from '../../core/context/context.js'
import { requireRowsApart } from '../buffers/overlap.js'

/** One side of a copy of rows: its address, and the distances between rows and between slices. */
export interface BoxSide {
  readonly address: bigint
  /** Host memory that may be unknown to CUDA. */
  readonly isHost?: boolean | undefined
  /** Distance between rows in bytes. */
  readonly pitch: number
  /** Number of rows per slice. */
  readonly rows: number
}

/** Size of a copy. */
export interface BoxSize {
  /** Bytes per row. */
  readonly width: number
  readonly height: number
  readonly depth: number
}

/** Returns the parts of C's copy structures that describe both sides. */
export function sides(to: BoxSide, from: BoxSide, { width, height, depth }: BoxSize) {
  const { CU_MEMORYTYPE_HOST: host, CU_MEMORYTYPE_UNIFIED: unified } = CUmemorytype
  return {
    ...(from.isHost
      ? { srcMemoryType: host, srcHost: from.address }
      : { srcMemoryType: unified, srcDevice: from.address }),
    srcPitch: BigInt(from.pitch),
    srcHeight: BigInt(from.rows),
    ...(to.isHost ? { dstMemoryType: host, dstHost: to.address } : { dstMemoryType: unified, dstDevice: to.address }),
    dstPitch: BigInt(to.pitch),
    dstHeight: BigInt(to.rows),
    WidthInBytes: BigInt(width),
    Height: BigInt(height),
    Depth: BigInt(depth),
  } as const
}

/** One side of a copy, with its device. */
export interface BoxEnd {
  readonly side: BoxSide
  /** Ordinal of the device; -1 for host memory. */
  readonly deviceOrdinal: number
  readonly context: bigint
}

/**
 * Queues a copy of rows and slices (`cuMemcpy3DAsync`). Between devices, with or without peer access, uses
 * `cuMemcpy3DPeerAsync`. Both packages use libcuda here, because libcudart fills the same structures.
 * @param api the function in errors; undefined allows overlapping sides
 * @throws RangeError when the sides overlap
 */
export function queueBoxCopy(
  context: Context,
  stream: CUstream,
  to: BoxEnd,
  from: BoxEnd,
  size: BoxSize,
  api?: string,
): void {
  if (api !== undefined) requireRowsApart(to.side, from.side, size, api)
  const own = context.device.ordinal
  const isOwn = ({ deviceOrdinal }: BoxEnd): boolean => deviceOrdinal < 0 || deviceOrdinal === own
  const described = sides(to.side, from.side, size)
  if (isOwn(to) && isOwn(from)) {
    const parameters = CUDA_MEMCPY3D.allocate(described)
    context._callDriver('cuMemcpy3DAsync', () => cuMemcpy3DAsync(parameters, stream))
    return
  }
  const parameters = CUDA_MEMCPY3D_PEER.allocate({
    ...described,
    srcContext: from.deviceOrdinal < 0 ? context.handle : from.context,
    dstContext: to.deviceOrdinal < 0 ? context.handle : to.context,
  })
  context._callDriver('cuMemcpy3DPeerAsync', () => cuMemcpy3DPeerAsync(parameters, stream))
}
