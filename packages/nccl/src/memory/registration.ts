import { keepRegistered } from '@shoal/driver/basics'
import { ncclCommDeregister, ncclCommRegister } from '@shoal/nccl-sys'
import { inspectKey, inspectLine, type MemoryLike, PublicObject, requireMade } from '@shoal/types'
import { memoryAt } from '../arguments/operands.js'
import { afterCollected } from '../group/groupOffThread.js'
import { callNow } from '../group/submit.js'
import { addChild, type Child, type LiveCommunicator, removeChild, requireIdle } from '../lifetime/live.js'
import { addRegistration, type RegisteredRange, removeRegistration } from '../lifetime/registeredRanges.js'

/**
 * Memory that NCCL may use without copies (`ncclCommRegister`).
 *
 * A registration ends with its communicator at the latest. If you dispose of the memory earlier, it is freed at that
 * time.
 *
 * @example
 * ```ts
 * using registration = communicator.register(buffer)
 * communicator.allReduce(buffer, buffer, { stream })
 * ```
 */
export class Registration extends PublicObject {
  /** The memory. */
  readonly memory: MemoryLike
  readonly #live: LiveCommunicator
  readonly #handle: bigint
  readonly #range: RegisteredRange
  readonly #child: Child
  /** Allows the memory to be freed. */
  readonly #giveBack: () => void
  #disposed = false

  /** @internal */
  constructor(live: LiveCommunicator, handle: bigint, memory: MemoryLike, range: RegisteredRange) {
    requireMade(handle, 'Registration', 'Communicator.register')
    super()
    this.memory = memory
    this.#live = live
    this.#handle = handle
    this.#range = range
    this.#child = { release: async () => this.dispose(), forget: () => this.#forget() }
    this.#giveBack = keepRegistered(memory)
    addRegistration(range)
    addChild(live, this.#child)
  }

  /** Whether NCCL uses the registration. NCCL registers nothing for 0 bytes, or if registration is disabled. */
  get isEffective(): boolean {
    return this.#handle !== 0n
  }

  /** Whether it was disposed of, or its communicator has ended. */
  get disposed(): boolean {
    return this.#disposed
  }

  /**
   * Ends the registration (`ncclCommDeregister`). Idempotent.
   *
   * First await the streams with operations on the memory.
   *
   * @throws StatusError if NCCL refuses.
   */
  dispose(): void {
    if (this.#disposed) return
    this.#end()
    const deregister = (): void => {
      try {
        callNow(this.#live, 'ncclCommDeregister', () => ncclCommDeregister(this.#live.handle, this.#handle))
      } finally {
        this.#giveBack()
      }
    }
    if (!afterCollected(this.#live, deregister)) deregister()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }

  get [Symbol.toStringTag](): string {
    return 'Registration'
  }

  override [inspectKey](): string {
    const { address, byteLength, deviceOrdinal } = this.#range
    return inspectLine('Registration', { address, byteLength, deviceOrdinal, disposed: this.#disposed || undefined })
  }

  #forget(): void {
    this.#end()
    this.#giveBack()
  }

  #end(): void {
    this.#disposed = true
    removeRegistration(this.#range)
    removeChild(this.#live, this.#child)
  }
}

export function register(live: LiveCommunicator, memory: MemoryLike): Registration {
  const api = 'Communicator.register'
  const { address, byteLength } = memoryAt(memory, live, api, 'memory', false)
  requireIdle(live, api)
  const out = new BigUint64Array(1)
  callNow(live, 'ncclCommRegister', () => ncclCommRegister(live.handle, address, byteLength, out))
  const description = `a registration with the communicator of rank ${live.rank}`
  return new Registration(live, out[0] ?? 0n, memory, {
    deviceOrdinal: live.deviceOrdinal,
    address,
    byteLength,
    description,
  })
}
