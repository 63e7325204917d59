import type { Context } from '@shoal/cuda-base'
import {
  CUDA_MEMCPY3D,
  CUDA_MEMCPY3D_PEER,
  CUmemorytype,
  type CUstream,
  cuMemcpy3DAsync,
  cuMemcpy3DPeerAsync,
} from '@shoal/cuda-sys/driver'

/** One side of a copy of rows: where it begins, and how its rows and slices follow each other. */
export interface BoxSide {
  readonly address: bigint
  /** Host memory that CUDA may not know. */
  readonly isHost?: boolean | undefined
  /** Bytes from row to row. */
  readonly pitch: number
  /** Rows from slice to slice. */
  readonly rows: number
}

/** How much is copied. */
export interface BoxSize {
  /** Bytes of a row. */
  readonly width: number
  readonly height: number
  readonly depth: number
}

function sides(to: BoxSide, from: BoxSide, { width, height, depth }: BoxSize) {
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

/** Queues a copy of rows and slices (`cuMemcpy3DAsync`). libcudart fills the same structure: libcuda serves both packages. */
export function queueBoxCopy(context: Context, stream: CUstream, to: BoxSide, from: BoxSide, size: BoxSize): void {
  const parameters = CUDA_MEMCPY3D.allocate(sides(to, from, size))
  context._callDriver('cuMemcpy3DAsync', () => cuMemcpy3DAsync(parameters, stream))
}

/** The same between devices, with or without peer access (`cuMemcpy3DPeerAsync`). */
export function queuePeerBoxCopy(
  context: Context,
  stream: CUstream,
  to: BoxSide,
  from: BoxSide & { readonly context: bigint },
  size: BoxSize,
): void {
  const parameters = CUDA_MEMCPY3D_PEER.allocate({
    ...sides(to, from, size),
    srcContext: from.context,
    dstContext: context.handle,
  })
  context._callDriver('cuMemcpy3DPeerAsync', () => cuMemcpy3DPeerAsync(parameters, stream))
}
