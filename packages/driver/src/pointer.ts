import { check, describeValue, Status, scratch } from '@shoal/cuda-base'
import { type CUdeviceptr, CUpointer_attribute, cuPointerGetAttribute } from '@shoal/cuda-sys/driver'
import { type ContextSource, contextOf } from './context.js'

/** What CUDA knows about an address. */
export interface PointerInfo {
  /** `'host'` for page-locked memory of the host, `'unknown'` for memory CUDA does not know. */
  readonly type: 'device' | 'host' | 'unknown'
  /** Whether it is managed memory, which moves between host and devices. */
  readonly isManaged: boolean
  /** Ordinal of its device; -1 for unknown memory. */
  readonly device: number
  /** First address of the allocation it lies in; 0n for unknown memory. */
  readonly rangeStart: bigint
  /** Bytes of that allocation; 0 for unknown memory. */
  readonly rangeLength: number
}

const hostMemory = 1

const unknown: PointerInfo = { type: 'unknown', isManaged: false, device: -1, rangeStart: 0n, rangeLength: 0 }

/** Asks what lies at an address (`cuPointerGetAttribute`). An address CUDA does not know is no error. */
export function pointerInfo(source: ContextSource, address: bigint): PointerInfo {
  const context = contextOf(source)
  if (typeof address !== 'bigint') throw new TypeError(`address must be a bigint, not ${describeValue(address)}`)
  return context.run(() => {
    const type = attribute(address, CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    if (type === undefined) return unknown
    const isManaged = attribute(address, CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED)
    const device = attribute(address, CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    const start = attribute(address, CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
    const length = attribute(address, CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE)
    return {
      type: Number(type) === hostMemory ? 'host' : 'device',
      isManaged: (isManaged ?? 0n) !== 0n,
      device: Number(BigInt.asIntN(32, device ?? -1n)),
      rangeStart: start ?? 0n,
      rangeLength: Number(length ?? 0n),
    }
  })
}

/** One attribute as the word it is written into; undefined for an address CUDA does not know. */
function attribute(address: bigint, code: CUpointer_attribute): bigint | undefined {
  const out = scratch()
  out.u64[0] = 0n
  const status: number = cuPointerGetAttribute(out, code, address as CUdeviceptr)
  if (status === Status.invalidValue) return undefined
  check(status, 'cuPointerGetAttribute')
  return out.u64[0]
}
