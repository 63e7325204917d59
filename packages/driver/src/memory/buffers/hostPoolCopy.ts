import {
  type CUdeviceptr,
  CUmemorytype,
  CUpointer_attribute,
  type CUstream,
  cuPointerGetAttribute,
} from '@shoal/cuda-sys/driver'
import { addressOf, callInContext } from '@shoal/ffi'
import type { Context } from '../../core/context/context.js'
import { Status } from '../../core/errors.js'
import { scratch } from '../../core/native.js'

/**
 * Repeats a refused copy with `cuMemcpyAsync` if an address that the call named as device memory lies in a pool of host
 * memory. An H200 refuses such addresses in `cuMemcpyHtoDAsync`, `cuMemcpyDtoHAsync` and `cuMemcpyDtoDAsync`.
 * @param named the addresses that the call named as device memory
 * @returns the status of the second copy, or `CUDA_ERROR_INVALID_VALUE` for other memory
 */
export function copyInHostPool(
  context: Context,
  stream: CUstream,
  named: readonly bigint[],
  to: ArrayBufferView | bigint,
  from: ArrayBufferView | bigint,
  byteLength: number,
): number {
  const types = named.map((address) => memoryTypeOf(context, address))
  // cuMemcpyAsync treats an unknown address as ordinary memory of this process.
  if (types.includes(undefined) || !types.includes(CUmemorytype.CU_MEMORYTYPE_HOST)) return Status.invalidValue
  callInContext(context._handle)
  return context._cuda.calls.memcpyAsync(addressFrom(to), addressFrom(from), byteLength, stream)
}

function addressFrom(place: ArrayBufferView | bigint): CUdeviceptr {
  return (typeof place === 'bigint' ? place : addressOf(place)) as CUdeviceptr
}

/** Returns the type of memory; undefined if the driver does not know the address. */
function memoryTypeOf(context: Context, address: bigint): number | undefined {
  const out = scratch()
  out.u32[0] = 0
  callInContext(context._handle)
  const attribute = CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
  const status: number = cuPointerGetAttribute(out, attribute, address as CUdeviceptr)
  return status === Status.success ? out.u32[0] : undefined
}
