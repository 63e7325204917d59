import { type CUmemGenericAllocationHandle, cuMemRelease, cuMemRetainAllocationHandle } from '@shoal/cuda-sys/driver'
import { keepRegistered, nameOfType, requireElementType } from '@shoal/driver/basics'
import {
  nvshmemx_buffer_register,
  nvshmemx_buffer_register_symmetric,
  nvshmemx_buffer_unregister,
  nvshmemx_buffer_unregister_all,
  nvshmemx_status,
} from '@shoal/nvshmem-sys'
import {
  type ElementType,
  inspectKey,
  inspectLine,
  type MemoryLike,
  type MemoryRange,
  PublicObject,
  requireMade,
  type StatusError,
  type WaitOptions,
} from '@shoal/types'
import { checkNvshmem, nvshmemError } from './errors.js'
import { Allocation } from './heap/allocation.js'
import { SymmetricBuffer } from './heap/symmetricBuffer.js'
import { localAt } from './operands.js'
import type { LiveSession } from './queue/liveSession.js'

/**
 * Local memory registered with NVSHMEM.
 *
 * Transfers to PEs without NVLink or PCIe access require a registration. It keeps the memory until `dispose()` or the
 * end of the session. If you dispose of the memory earlier, it is freed at that time.
 *
 * @example
 * ```ts
 * await using registration = await session.register(deviceBuffer)
 * await session.put(target, deviceBuffer, { pe: 1 }) // also where PE 1 is on another machine
 * ```
 */
export class Registration extends PublicObject {
  /** Start of the memory. */
  readonly address: bigint
  /** Size in bytes. */
  readonly byteLength: number
  readonly #live: LiveSession
  readonly #giveBack: () => void
  #memory: MemoryLike | undefined
  #ending: Promise<void> | undefined

  /** @internal */
  constructor(live: LiveSession, memory: MemoryLike, range: MemoryRange) {
    requireMade(range?.address, 'Registration', 'Session.register')
    super()
    this.#live = live
    this.#memory = memory
    this.#giveBack = keepUntilUnregistered(live, memory)
    this.address = range.address
    this.byteLength = range.byteLength
  }

  /** Whether `dispose()` was called. */
  get disposed(): boolean {
    return this.#ending !== undefined
  }

  /**
   * Ends the registration (`nvshmemx_buffer_unregister`), in turn with the session's other calls. Idempotent.
   *
   * The memory itself stays allocated.
   *
   * @throws StatusError, SessionStuckError, AbortedError.
   */
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

  get [Symbol.toStringTag](): string {
    return 'Registration'
  }

  /** @internal */
  override [inspectKey](): string {
    const { address, byteLength, disposed } = this
    return inspectLine('Registration', { address, byteLength, disposed: disposed || undefined })
  }

  async #unregister(): Promise<void> {
    const keep = this.#memory === undefined ? [] : [this.#memory]
    this.#memory = undefined
    const api = 'Registration.dispose'
    if (this.#live.isOver()) return // ended with the session
    const [status] = await this.#live.queue.run(api, () => nvshmemx_buffer_unregister(this.address), { keep })
    this.#giveBack()
    checkNvshmem(status, 'nvshmemx_buffer_unregister')
  }
}

function keepUntilUnregistered(live: LiveSession, memory: MemoryLike): () => void {
  const end = keepRegistered(memory)
  const giveBack = (): void => {
    live.registered.delete(giveBack)
    end()
  }
  live.registered.add(giveBack)
  return giveBack
}

/** Registers local memory with NVSHMEM. */
export async function register(live: LiveSession, memory: MemoryLike): Promise<Registration> {
  const api = 'Session.register'
  const range = localAt(live, memory, api, 'memory', false)
  const { address, byteLength } = range
  const call = (): number => nvshmemx_buffer_register(address, byteLength)
  const [status] = await live.queue.run(api, call, { operands: [memory] })
  checkNvshmem(status, 'nvshmemx_buffer_register')
  return new Registration(live, memory, range)
}

/** Ends all registrations of local memory. */
export async function unregisterAll(live: LiveSession): Promise<void> {
  const ended = [...live.registered]
  await live.queue.run('Session.unregisterAll', nvshmemx_buffer_unregister_all)
  for (const giveBack of ended) giveBack()
}

/** Maps memory of this process into the symmetric heap. */
export async function registerSymmetric<E extends ElementType>(
  live: LiveSession,
  memory: MemoryLike,
  dtype: E,
  wait: WaitOptions,
): Promise<SymmetricBuffer<E>> {
  const api = 'Session.registerSymmetric'
  const { bytes } = requireElementType(dtype, api)
  const { address, byteLength } = localAt(live, memory, api, 'memory', true)
  if (byteLength === 0 || byteLength % bytes !== 0) {
    throw new RangeError(`${api}: ${byteLength} bytes are no whole elements of ${nameOfType(dtype)}, or none`)
  }
  const refusal = live.queue.refusal(api, wait)
  if (refusal !== undefined) throw refusal
  requireMapping(live, address)
  const call = (): bigint => nvshmemx_buffer_register_symmetric(address, byteLength, 0)
  const [mapped] = await live.queue.run(api, call, { wait, operands: [memory] })
  if (typeof mapped !== 'bigint' || mapped === 0n) {
    throw noSymmetricMemory()
  }
  return SymmetricBuffer._of(new Allocation(live, mapped, byteLength, memory), dtype, byteLength / bytes)
}

/** Requires mapped memory, because NVSHMEM 3.4.5 hangs for other memory. */
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
