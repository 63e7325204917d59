import { named } from '@shoal/cuda-base/basics'
import { type CUmemGenericAllocationHandle, cuMemRelease, cuMemRetainAllocationHandle } from '@shoal/cuda-sys/driver'
import {
  nvshmemx_buffer_register,
  nvshmemx_buffer_register_symmetric,
  nvshmemx_buffer_unregister,
  nvshmemx_buffer_unregister_all,
  nvshmemx_status,
} from '@shoal/nvshmem-sys'
import { type DType, dtypeInfo, type MemoryLike, type MemoryRange, type StatusError } from '@shoal/types'
import { checkNvshmem, nvshmemError } from './errors.js'
import { localAt } from './operands.js'
import type { WaitOptions } from './queue/callQueue.js'
import type { LiveSession } from './queue/liveSession.js'
import { Allocation } from './heap/allocation.js'
import { SymmetricBuffer } from './heap/symmetricBuffer.js'

/**
 * Local memory that NVSHMEM knows, so that it can be the local side of transfers to PEs that are not reached over NVLink or
 * PCIe. It holds the memory until `dispose()`.
 */
export class Registration {
  /** Where the memory starts. */
  readonly address: bigint
  /** Size in bytes. */
  readonly byteLength: number
  readonly #live: LiveSession
  #memory: MemoryLike | undefined
  #ending: Promise<void> | undefined

  /** @internal */
  constructor(live: LiveSession, memory: MemoryLike, range: MemoryRange) {
    this.#live = live
    this.#memory = memory
    this.address = range.address
    this.byteLength = range.byteLength
  }

  /** Whether `dispose()` was called. */
  get disposed(): boolean {
    return this.#ending !== undefined
  }

  /** Takes the memory back from NVSHMEM (`nvshmemx_buffer_unregister`); the memory itself stays. Idempotent. */
  dispose(): Promise<void> {
    if (this.#ending === undefined) {
      const refusal = this.#live.isOver() ? undefined : this.#live.queue.refusal('Registration.dispose')
      if (refusal !== undefined) return Promise.reject(refusal)
      this.#ending = this.#unregister()
    }
    return this.#ending
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  async #unregister(): Promise<void> {
    const keep = this.#memory === undefined ? [] : [this.#memory]
    this.#memory = undefined
    const api = 'Registration.dispose'
    if (this.#live.isOver()) return // it went with the session
    const status = await this.#live.queue.runOne(api, () => nvshmemx_buffer_unregister(this.address), { keep })
    checkNvshmem(status, 'nvshmemx_buffer_unregister')
  }
}

/** Tells NVSHMEM of local memory. */
export async function register(live: LiveSession, memory: MemoryLike): Promise<Registration> {
  const api = 'Session.register'
  const range = localAt(live, memory, api, 'memory', false)
  const { address, byteLength } = range
  const call = (): number => nvshmemx_buffer_register(address, byteLength)
  checkNvshmem(await live.queue.runOne(api, call, { keep: [memory] }), 'nvshmemx_buffer_register')
  return new Registration(live, memory, range)
}

/** Takes all registered local memory back. */
export async function unregisterAll(live: LiveSession): Promise<void> {
  await live.queue.run('Session.unregisterAll', nvshmemx_buffer_unregister_all)
}

/** Makes memory of this process part of the symmetric heap. */
export async function registerSymmetric<D extends DType>(
  live: LiveSession,
  memory: MemoryLike,
  dtype: D,
  wait: WaitOptions,
): Promise<SymmetricBuffer<D>> {
  const api = 'Session.registerSymmetric'
  const { bytes } = named(api, 'dtype', () => dtypeInfo(dtype))
  const { address, byteLength } = localAt(live, memory, api, 'memory', true)
  if (byteLength === 0 || byteLength % bytes !== 0) {
    throw new RangeError(`${api}: ${byteLength} bytes are no whole elements of ${dtype}, or none`)
  }
  if (live.queue.takesCalls) requireMapping(live, address)
  const call = (): bigint => nvshmemx_buffer_register_symmetric(address, byteLength, 0)
  const mapped = await live.queue.runOne(api, call, { wait, keep: [memory] })
  if (typeof mapped !== 'bigint' || mapped === 0n) {
    throw noSymmetricMemory()
  }
  return SymmetricBuffer._of(new Allocation(live, mapped, byteLength, memory), dtype, byteLength / bytes)
}

/** With memory that is no mapping, NVSHMEM 3.4.5 never comes back. */
function requireMapping(live: LiveSession, address: bigint): void {
  const handle = new BigUint64Array(1)
  const status = live.queue.inContext(() => {
    const found = cuMemRetainAllocationHandle(handle, address)
    if (found === 0) cuMemRelease(handle[0] as CUmemGenericAllocationHandle)
    return found
  })
  if (status !== 0) throw noSymmetricMemory()
}

function noSymmetricMemory(): StatusError {
  return nvshmemError(
    nvshmemx_status.NVSHMEMX_ERROR_INVALID_VALUE,
    'nvshmemx_buffer_register_symmetric',
    'this memory cannot become symmetric: it has to be physical memory (cuMemCreate) that can be exported (PhysicalMemory.create with handleTypes), of whole granules of the heap (NVSHMEM_CUMEM_GRANULARITY), mapped by this process, of the same size on all PEs',
  )
}
