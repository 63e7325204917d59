import {
  CUmemAllocationProp,
  CUmemAllocationType,
  type CUmemGenericAllocationHandle,
  CUmemLocationType,
  cuMemCreate,
  cuMemGetAddressRange,
  cuMemGetInfo,
  cuMemRelease,
} from '@shoal/cuda-sys/driver'
import { nvshmemx_status } from '@shoal/nvshmem-sys'
import { checkCuda, nvshmemError } from '../errors.js'
import type { CallQueue } from '../queue/callQueue.js'
import type { HeapShape } from './heapShape.js'
import { HeapSpace } from './heapSpace.js'

/** NVSHMEM allocates multiples of this. */
const unit = 512

const roundedTo = (step: number, bytes: number): number => Math.ceil(bytes / step) * step

/** Takes the result of an allocation: its address, 0n for none, undefined if unknown. */
type Ended = (address: bigint | undefined) => void

/**
 * Tracks whether the symmetric heap of this PE has room.
 *
 * NVSHMEM ends the process if the device has no memory for the heap to grow, or the heap would exceed its limit. So
 * both are checked first.
 */
export class HeapRoom {
  readonly #queue: CallQueue
  readonly #deviceOrdinal: number
  readonly #shape: HeapShape
  readonly #space = new HeapSpace()
  /** Bytes by which calls in progress may grow the heap. */
  #growing = 0
  /** Bytes that calls in progress take from existing heap memory. */
  #fitting = 0

  /** @param queue makes the driver's calls in the context of the device. */
  constructor(queue: CallQueue, deviceOrdinal: number, shape: HeapShape) {
    this.#queue = queue
    this.#deviceOrdinal = deviceOrdinal
    this.#shape = shape
  }

  /**
   * Reserves room for an allocation.
   *
   * @throws StatusError (NVSHMEMX_ERROR_OUT_OF_MEMORY) if there is no room for it.
   */
  take(byteLength: number, alignment: number, api: string): Ended {
    // NVSHMEM takes `alignment` more bytes to find an aligned place.
    const bytes = roundedTo(unit, byteLength + alignment)
    const growth = this.#shape.step === 0 ? 0 : roundedTo(this.#shape.step, bytes)
    const grows = growth > 0 && this.#canGrow(growth)
    if (!grows && !this.#fits(bytes)) throw this.#refusal(byteLength, alignment, api)
    const [growing, fitting] = grows ? [growth, 0] : [0, bytes]
    this.#growing += growing
    this.#fitting += fitting
    return (address) => {
      this.#growing -= growing
      // A cancelled call may still allocate, so its bytes stay counted.
      this.#fitting += address === undefined ? bytes - fitting : -fitting
      if (address === undefined || address === 0n) return
      this.#space.add(Number(address), roundedTo(unit, byteLength), (at) => this.#mappingAt(at))
    }
  }

  /** Records that memory was freed, in turn with the session's other calls. */
  give(address: bigint): void {
    this.#space.remove(Number(address))
  }

  /** True if the heap may grow further: the driver can allocate the memory, which is then freed again. */
  #canGrow(growth: number): boolean {
    const wanted = this.#growing + growth
    if (this.#mappedBytes() + wanted >= this.#shape.limit) return false
    const handle = new BigUint64Array(1)
    const properties = CUmemAllocationProp.allocate({
      type: CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED,
      location: { type: CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id: this.#deviceOrdinal },
    })
    return this.#queue.inContext(() => {
      if (cuMemCreate(handle, wanted, properties, 0) !== 0) return false
      cuMemRelease(handle[0] as CUmemGenericAllocationHandle)
      return true
    })
  }

  /** NVSHMEM always maps the first step itself, even without allocations in it. */
  #mappedBytes(): number {
    return Math.max(this.#space.mappedBytes, this.#shape.step)
  }

  #fits(bytes: number): boolean {
    const wanted = this.#fitting + bytes
    if (this.#space.isKnown) return wanted <= this.#space.largestFree()
    // The mapping is not known yet. NVSHMEM's own buffers take less than half of the first step.
    const { step, limit } = this.#shape
    return wanted <= (step === 0 ? limit : step / 2)
  }

  #mappingAt(address: number): { readonly start: number; readonly end: number } | undefined {
    const [start, bytes] = [new BigUint64Array(1), new BigUint64Array(1)]
    const status = this.#queue.inContext(() => cuMemGetAddressRange(start, bytes, BigInt(address) as never))
    return status === 0 ? { start: Number(start[0]), end: Number(start[0]) + Number(bytes[0]) } : undefined
  }

  #refusal(bytes: number, alignment: number, api: string): Error {
    const { step, limit, limitedBy } = this.#shape
    const [free, total] = [new BigUint64Array(1), new BigUint64Array(1)]
    checkCuda(
      this.#queue.inContext(() => cuMemGetInfo(free, total)),
      'cuMemGetInfo',
    )
    const kept = this.#space.largestFree()
    const toGrow = Math.min(Number(free[0]) - this.#growing, limit - this.#mappedBytes() - 1)
    const room = Math.max(0, kept - this.#fitting, step === 0 ? 0 : Math.floor(toGrow / step) * step)
    const underWay = this.#growing + this.#fitting
    return nvshmemError(
      nvshmemx_status.NVSHMEMX_ERROR_OUT_OF_MEMORY,
      api,
      `${bytes} bytes of symmetric memory ${alignment === 0 ? '' : `at a multiple of ${alignment} `}are wanted, ` +
        `and device ${this.#deviceOrdinal} has room for ${room}: ${free[0]} are free` +
        (kept === 0 ? '' : `, ${kept} the heap has kept`) +
        (underWay === 0 ? '' : `, ${underWay} go to allocations under way`) +
        (step === 0
          ? `; the heap does not grow (${limitedBy})`
          : `; the heap grows by multiples of ${step} (NVSHMEM_CUMEM_GRANULARITY) to less than ${limit} (${limitedBy})`),
    )
  }
}
