import { type CUmemGenericAllocationHandle, cuMemRelease, cuMemRetainAllocationHandle } from '@shoal/cuda-sys/driver'
import { keepRegistered, keepWhile } from '@shoal/driver/basics'
import { type BackgroundWork, callInContext, NativeMemory, offThread } from '@shoal/ffi'
import {
  NCCL_WIN_COLL_SYMMETRIC,
  NCCL_WIN_DEFAULT,
  NCCL_WIN_STRICT_ORDERING,
  ncclCommWindowDeregister,
  ncclCommWindowRegister,
  ncclGetLsaDevicePointer,
  ncclGetLsaMultimemDevicePointer,
  ncclGetMultimemDevicePointer,
  ncclGetPeerDevicePointer,
  type ncclWindow_t,
  ncclWinGetUserPtr,
} from '@shoal/nccl-sys'
import {
  DisposedError,
  FeatureNotSupportedError,
  inspectKey,
  inspectLine,
  loadedFrom,
  type MemoryLike,
  type MemoryRange,
  memoryProtocol,
  type OptionKeys,
  optionalBoolean,
  outOfRange,
  PublicObject,
  requireAddress,
  requireInteger,
  requireMade,
  requireOptions,
  waitKeys,
  withJson,
} from '@shoal/types'
import { memoryAt } from '../arguments/operands.js'
import { checkNccl } from '../errors.js'
import { callNow } from '../group/submit.js'
import { whenDeviceIdle } from '../lifetime/deviceIdle.js'
import { InFlightMemory } from '../lifetime/inFlightMemory.js'
import { addChild, type Child, exclusively, type LiveCommunicator, removeChild, settled } from '../lifetime/live.js'
import { addRegistration, type RegisteredRange, removeRegistration } from '../lifetime/registeredRanges.js'
import { type CommunicatorWaitOptions, readWait } from '../lifetime/waitOptions.js'
import { NcclMemory } from '../memory/ncclMemory.js'
import { requireNcclVersion } from '../version.js'

/** Options of a window. */
export interface WindowOptions extends CommunicatorWaitOptions {
  /**
   * Whether every rank uses the same offset in an operation (`NCCL_WIN_COLL_SYMMETRIC`). Default: true.
   *
   * Symmetric windows make operations fast, and one-sided operations require them.
   */
  readonly symmetric?: boolean | undefined
  /**
   * Whether operations on the window over InfiniBand stay in order (`NCCL_WIN_STRICT_ORDERING`, 2.30). Default: false.
   */
  readonly strictOrdering?: boolean | undefined
}

const windowKeys: OptionKeys<WindowOptions> = { symmetric: true, strictOrdering: true, ...waitKeys }
const firstWithStrictOrdering = 23003
const requiredAlignment = 4096n

/** Memory of another rank, mapped for this rank's kernels. Only the other rank can free the memory. */
export interface PeerMemory extends MemoryLike {
  /** Rank that owns the memory. */
  readonly rank: number
  /** Address for this rank's device. */
  readonly address: bigint
  /** Size of the window in bytes. */
  readonly byteLength: number
}

/** Open windows of each communicator. */
const windows = new WeakMap<LiveCommunicator, Set<Window>>()

/**
 * Memory that all ranks of a communicator share with each other (`ncclWindow_t`, NCCL 2.27).
 *
 * Collectives on a window run without intermediate copies, one-sided operations write to it, and kernels access the
 * memory of peers through it.
 *
 * All ranks create a window together, with buffers of equal size. The window ends with its communicator at the latest.
 * If you dispose of the memory earlier, it is freed when the window ends.
 *
 * @example
 * ```ts
 * const memory = await communicator.allocate({ dtype: 'f32', length: 1 << 20 })
 * await using window = await communicator.registerWindow(memory) // on every rank
 * communicator.putSignal(memory, { peer, window, offset: 4096, count: 512, stream })
 * ```
 */
export class Window extends PublicObject {
  /** This rank's memory. */
  readonly memory: MemoryLike
  /** Size of each rank's part, in bytes. */
  readonly byteLength: number
  /** Whether all ranks use the same offsets in operations. */
  readonly symmetric: boolean
  readonly #live: LiveCommunicator
  readonly #handle: ncclWindow_t
  readonly #range: RegisteredRange
  readonly #child: Child
  readonly #forgotten = new AbortController()
  /** Allows the memory to be freed. */
  readonly #giveBack: () => void
  #ending: Promise<void> | undefined

  /** @internal */
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** False for an object that only has the prototype. */
  static override [Symbol.hasInstance](value: unknown): value is Window {
    return typeof value === 'object' && value !== null && #handle in value
  }

  /** @internal */
  constructor(
    live: LiveCommunicator,
    handle: ncclWindow_t,
    memory: MemoryLike,
    range: RegisteredRange,
    symmetric: boolean,
    giveBack: () => void,
  ) {
    requireMade(giveBack, 'Window', 'Communicator.registerWindow', 'function')
    super()
    this.memory = memory
    this.byteLength = range.byteLength
    this.symmetric = symmetric
    this.#live = live
    this.#handle = handle
    this.#range = range
    this.#child = { release: () => this.dispose(), forget: () => this.#forget() }
    this.#giveBack = giveBack
    addRegistration(range)
    addChild(live, this.#child)
    let own = windows.get(live)
    if (own === undefined) {
      own = new Set()
      windows.set(live, own)
    }
    own.add(this)
  }

  /** The `ncclWindow_t`, which kernels take as an argument. @throws DisposedError after its end. */
  get handle(): ncclWindow_t {
    return this.#use('handle')
  }

  /** Whether it was disposed of, or its communicator has ended. */
  get disposed(): boolean {
    return this.#ending !== undefined
  }

  /** Address of this rank's memory according to NCCL (`ncclWinGetUserPtr`, NCCL 2.29). */
  get userPointer(): bigint {
    const window = this.#use('userPointer')
    const { handle } = this.#live
    return this.#pointer('ncclWinGetUserPtr', (out) => ncclWinGetUserPtr(handle, window, out)) ?? 0n
  }

  /**
   * Returns the address of rank `peer`'s window for this rank's device (`ncclGetPeerDevicePointer`, NCCL 2.29).
   *
   * Undefined if loads and stores do not reach that rank, such as on another node.
   *
   * @param offset offset in the window, in bytes. Default: 0.
   * @throws RangeError for a rank or an offset outside the window; StatusError if NCCL refuses.
   */
  peerPointer(peer: number, offset = 0): bigint | undefined {
    const api = 'Window.peerPointer'
    const window = this.#use('peerPointer')
    const rank = requireInteger(peer, api, 'peer', 0, this.#live.worldSize - 1)
    const bytes = requireInteger(offset, api, 'offset', 0, this.byteLength - 1)
    return this.#pointer('ncclGetPeerDevicePointer', (out) => ncclGetPeerDevicePointer(window, bytes, rank, out))
  }

  /**
   * Returns the memory of rank `peer`, mapped for this rank's device; undefined if it cannot be reached.
   *
   * Use it for copies and kernels of this rank's device. The ranks must synchronize their access themselves.
   */
  peerMemory(peer: number): PeerMemory | undefined {
    const address = this.peerPointer(peer)
    if (address === undefined) return undefined
    const { deviceOrdinal, context } = this.#live
    const { byteLength } = this
    const { dtype, length } = this.memory[memoryProtocol]
    const elements = dtype === undefined || length === undefined ? {} : { dtype, length }
    const range: MemoryRange = Object.freeze({
      version: 0,
      address,
      byteLength,
      deviceOrdinal,
      context,
      ...elements,
    })
    const use = (): MemoryRange => {
      this.#use('peerMemory')
      return range
    }
    return withJson({
      rank: peer,
      address,
      byteLength,
      get [memoryProtocol]() {
        return use()
      },
    })
  }

  /**
   * Like {@link peerPointer}, for a rank of the LSA team (`ncclGetLsaDevicePointer`, NCCL 2.29).
   *
   * The LSA team contains the ranks that reach each other by loads and stores.
   */
  lsaPointer(lsaRank: number, offset = 0): bigint {
    const api = 'Window.lsaPointer'
    const window = this.#use('lsaPointer')
    requireInteger(lsaRank, api, 'lsaRank', 0, this.#live.worldSize - 1)
    const bytes = requireInteger(offset, api, 'offset', 0, this.byteLength - 1)
    const call = (out: BigUint64Array) => ncclGetLsaDevicePointer(window, bytes, lsaRank, out)
    return this.#pointer('ncclGetLsaDevicePointer', call) ?? 0n
  }

  /**
   * Returns the multicast address of the windows of a team, `offset` bytes in; undefined without NVLink multicast.
   *
   * One store to this address reaches all windows. Calls `ncclGetLsaMultimemDevicePointer` or
   * `ncclGetMultimemDevicePointer` (NCCL 2.29).
   *
   * @param base of another team: `multimem` of a `DeviceCommunicator`. Default: the LSA team.
   */
  multimemPointer(offset = 0, base?: bigint): bigint | undefined {
    const api = 'Window.multimemPointer'
    const window = this.#use('multimemPointer')
    const bytes = requireInteger(offset, api, 'offset', 0, this.byteLength - 1)
    if (base === undefined) {
      const call = (out: BigUint64Array) => ncclGetLsaMultimemDevicePointer(window, bytes, out)
      return this.#pointer('ncclGetLsaMultimemDevicePointer', call)
    }
    if (requireAddress(base, api, 'base') === 0n) throw outOfRange(api, 'base', 'an address other than 0', base)
    const call = (out: BigUint64Array) => ncclGetMultimemDevicePointer(window, bytes, BigUint64Array.of(base), out)
    return this.#pointer('ncclGetMultimemDevicePointer', call)
  }

  /**
   * Waits for this rank's device and closes the window (`ncclCommWindowDeregister`, off the JavaScript thread).
   *
   * Idempotent. First await the streams of all ranks, because they access each other's memory.
   *
   * @throws StatusError if NCCL refuses.
   */
  dispose(): Promise<void> {
    this.#ending ??= this.#deregister()
    return this.#ending
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  get [Symbol.toStringTag](): string {
    return 'Window'
  }

  override [inspectKey](): string {
    const { byteLength, symmetric } = this
    const { deviceOrdinal, address } = this.#range
    return inspectLine('Window', {
      deviceOrdinal,
      address,
      byteLength,
      symmetric,
      disposed: this.disposed || undefined,
    })
  }

  /** @internal The `ncclWindow_t`, checked for an operation on a communicator. */
  _handleFor(live: LiveCommunicator, api: string): ncclWindow_t {
    if (live !== this.#live) throw new TypeError(`${api}: window must be one of this communicator, not of another one`)
    return this.#use(api)
  }

  /** @internal */
  _holds(range: MemoryRange, byteLength: number): boolean {
    const { address } = this.#range
    const end = address + BigInt(this.byteLength)
    return this.#ending === undefined && range.address >= address && range.address + BigInt(byteLength) <= end
  }

  #use(operation: string): ncclWindow_t {
    if (this.#ending !== undefined) throw new DisposedError({ object: 'Window', operation })
    return this.#handle
  }

  #pointer(api: string, call: (out: BigUint64Array) => number): bigint | undefined {
    const out = new BigUint64Array(1)
    callNow(this.#live, api, () => call(out))
    return out[0] === 0n ? undefined : out[0]
  }

  #forget(): void {
    // The first dispose() reports the errors.
    this.#ending = Promise.resolve()
    this.#forgotten.abort()
    removeRegistration(this.#range)
    this.#giveBack()
    removeChild(this.#live, this.#child)
    windows.get(this.#live)?.delete(this)
  }

  async #deregister(): Promise<void> {
    try {
      await whenDeviceIdle(this.#live, 'Window.dispose', this.#forgotten.signal)
      await exclusively([this.#live], 'Window.dispose', async (background) => {
        const [status = 0] = await offThread({ context: this.#live.context, background }, () => {
          ncclCommWindowDeregister(this.#live.handle, this.#handle)
        })
        checkNccl(status, 'ncclCommWindowDeregister', this.#live.handle)
        if (!this.#live.isBlocking) await settled(this.#live, 'ncclCommWindowDeregister')
      })
    } finally {
      this.#forget()
    }
  }
}

/** True if memory is in a symmetric window, which the source of a one-sided operation requires. */
export function isInSymmetricWindow(live: LiveCommunicator, range: MemoryRange, byteLength: number): boolean {
  for (const window of windows.get(live) ?? []) if (window.symmetric && window._holds(range, byteLength)) return true
  return false
}

/** Requires mapped memory: NCCL would fail in the middle of the call and lose the communicator. @throws TypeError */
function requireMapped(live: LiveCommunicator, address: bigint, api: string): void {
  const handle = new BigUint64Array(1)
  callInContext(live.context)
  const isMapped = cuMemRetainAllocationHandle(handle, address) === 0
  if (isMapped) cuMemRelease(handle[0] as CUmemGenericAllocationHandle)
  else
    throw new TypeError(
      `${api}: memory must be NcclMemory or other mapped memory (PhysicalMemory), not memory allocated in another way; ` +
        'symmetric: false takes any memory',
    )
}

export async function registerWindow(
  live: LiveCommunicator,
  memory: MemoryLike,
  options: WindowOptions,
): Promise<Window> {
  const api = 'Communicator.registerWindow'
  requireOptions(options, api, windowKeys)
  const waitOptions = readWait(options, api)
  const symmetric = optionalBoolean(options.symmetric, api, 'symmetric', true)
  const strictOrdering = optionalBoolean(options.strictOrdering, api, 'strictOrdering', false)
  const { address, byteLength } = memoryAt(memory, live, api, 'memory', true)
  if (byteLength === 0) throw new RangeError(`${api}: memory must be at least a byte, not none`)
  if (address % requiredAlignment !== 0n) {
    throw new RangeError(`${api}: memory must start at a multiple of 4096, not at 0x${address.toString(16)}`)
  }
  if (symmetric && !(memory instanceof NcclMemory)) requireMapped(live, address, api)
  if (strictOrdering) requireNcclVersion(`${api} with strictOrdering`, firstWithStrictOrdering)
  const flags =
    (symmetric ? NCCL_WIN_COLL_SYMMETRIC : NCCL_WIN_DEFAULT) | (strictOrdering ? NCCL_WIN_STRICT_ORDERING : 0)
  const out = NativeMemory.allocate(8)
  const description = `a window of the communicator of rank ${live.rank}`
  const range = { deviceOrdinal: live.deviceOrdinal, address, byteLength, description }
  // From now on the memory is not freed during the call, or while the window exists.
  const giveBack = keepRegistered(memory)
  let isOpen = false
  const inFlight = new InFlightMemory(live, () => {
    out.dispose()
    if (!isOpen) giveBack()
  })
  const register = (background: BackgroundWork): Promise<ncclWindow_t> =>
    inFlight.during(async () => {
      // Throws if the memory was disposed of while this waited for its turn.
      memoryAt(memory, live, api, 'memory', true)
      const made = offThread({ context: live.context, keep: [out], background }, () => {
        ncclCommWindowRegister(live.handle, address, byteLength, out, flags)
      })
      keepWhile([memory], made, background)
      const [status = 0] = await made
      checkNccl(status, 'ncclCommWindowRegister', live.handle)
      // For a nonblocking communicator NCCL returns success and provides the window later.
      await settled(live, 'ncclCommWindowRegister')
      return (out.u64[0] ?? 0n) as ncclWindow_t
    })
  let handle: ncclWindow_t
  try {
    handle = await exclusively([live], 'registerWindow', register, waitOptions)
    isOpen = handle !== 0n
  } finally {
    inFlight.release()
  }
  // NCCL returns success without a window if the ranks cannot share memory.
  if (handle === 0n) {
    throw new FeatureNotSupportedError({
      library: 'NCCL',
      api: 'windows',
      reason: 'the devices of this communicator have no symmetric memory, or NCCL_CUMEM_ENABLE or NCCL_WIN_ENABLE is 0',
    })
  }
  return new Window(live, handle, memory, range, symmetric, giveBack)
}
