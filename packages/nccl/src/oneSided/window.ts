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

/** How memory is opened to all ranks. */
export interface WindowOptions extends CommunicatorWaitOptions {
  /**
   * Whether every rank will use the same offset into its buffer in an operation (`NCCL_WIN_COLL_SYMMETRIC`): what makes
   * operations fast, and what one-sided operations need. Default true.
   */
  readonly symmetric?: boolean | undefined
  /**
   * Whether operations on the window over InfiniBand keep their order (`NCCL_WIN_STRICT_ORDERING`, 2.30). Default
   * false.
   */
  readonly strictOrdering?: boolean | undefined
}

const windowKeys: OptionKeys<WindowOptions> = { symmetric: true, strictOrdering: true, ...waitKeys }
const firstWithStrictOrdering = 23003
const requiredAlignment = 4096n

/** Memory of another rank, as this rank's kernels reach it. Nobody frees it from here. */
export interface PeerMemory extends MemoryLike {
  /** Rank whose memory it is. */
  readonly rank: number
  /** Where this rank's device reaches it. */
  readonly address: bigint
  /** Size of the window in bytes. */
  readonly byteLength: number
}

/** The windows of each communicator that are open. */
const windows = new WeakMap<LiveCommunicator, Set<Window>>()

/**
 * Memory that all ranks of a communicator have opened to each other (`ncclWindow_t`, NCCL 2.27). Collectives on it run
 * without copies in between, one-sided operations write into it, and kernels reach the memory of peers through it.
 *
 * All ranks make it together, with buffers of the same size. It ends with its communicator at the latest; memory that
 * is disposed of before is given back then.
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
  /** The memory may go. */
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

  /** The `ncclWindow_t`, which kernels take as an argument. @throws DisposedError once it is gone. */
  get handle(): ncclWindow_t {
    return this.#use('handle')
  }

  /** Whether it was disposed of, or its communicator has ended. */
  get disposed(): boolean {
    return this.#ending !== undefined
  }

  /** Address of this rank's memory, as NCCL knows it (`ncclWinGetUserPtr`, NCCL 2.29). */
  get userPointer(): bigint {
    const window = this.#use('userPointer')
    const { handle } = this.#live
    return this.#pointer('ncclWinGetUserPtr', (out) => ncclWinGetUserPtr(handle, window, out)) ?? 0n
  }

  /**
   * Where this rank's device reaches the window of rank `peer` by loads and stores, `offset` bytes in; undefined where
   * it does not, as on another node (`ncclGetPeerDevicePointer`, NCCL 2.29).
   *
   * @throws RangeError for a rank or an offset that is not there; StatusError when NCCL refuses.
   */
  peerPointer(peer: number, offset = 0): bigint | undefined {
    const api = 'Window.peerPointer'
    const window = this.#use('peerPointer')
    const rank = requireInteger(peer, api, 'peer', 0, this.#live.worldSize - 1)
    const bytes = requireInteger(offset, api, 'offset', 0, this.byteLength - 1)
    return this.#pointer('ncclGetPeerDevicePointer', (out) => ncclGetPeerDevicePointer(window, bytes, rank, out))
  }

  /**
   * The memory of rank `peer`, as this rank reaches it; undefined where it does not. For copies and kernels of this
   * rank's device; whether the peer is ready for that is between the ranks.
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
   * The same for a rank of the LSA team, those that reach each other by loads and stores (`ncclGetLsaDevicePointer`,
   * NCCL 2.29).
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
   * Where a store reaches the windows of a whole team at once, `offset` bytes in; undefined without NVLink multicast
   * (`ncclGetLsaMultimemDevicePointer`, `ncclGetMultimemDevicePointer`, NCCL 2.29).
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
   * Waits for the work of this rank's device and closes the window (`ncclCommWindowDeregister`, off the JavaScript
   * thread). Idempotent. Await the streams of all ranks before: they reach into each other's memory.
   *
   * @throws StatusError when NCCL refuses.
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

  /** @internal The `ncclWindow_t`, for an operation on a communicator. */
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
    // What went wrong was told to whoever disposed of it first.
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

/** Whether memory lies in a symmetric window of the communicator, as the source of a one-sided operation has to. */
export function isInSymmetricWindow(live: LiveCommunicator, range: MemoryRange, byteLength: number): boolean {
  for (const window of windows.get(live) ?? []) if (window.symmetric && window._holds(range, byteLength)) return true
  return false
}

/** NCCL itself would find out in the middle of the call, and the communicator would be lost. @throws TypeError */
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
  // From here on the memory is not given back under the call, nor under the window.
  const giveBack = keepRegistered(memory)
  let isOpen = false
  const inFlight = new InFlightMemory(live, () => {
    out.dispose()
    if (!isOpen) giveBack()
  })
  const register = (background: BackgroundWork): Promise<ncclWindow_t> =>
    inFlight.during(async () => {
      // Throws where the memory was disposed of while this waited for its turn.
      memoryAt(memory, live, api, 'memory', true)
      const made = offThread({ context: live.context, keep: [out], background }, () => {
        ncclCommWindowRegister(live.handle, address, byteLength, out, flags)
      })
      keepWhile([memory], made, background)
      const [status = 0] = await made
      checkNccl(status, 'ncclCommWindowRegister', live.handle)
      // Where the communicator does not block NCCL says success, and hands out the window later.
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
  // NCCL says success and gives no window where the ranks cannot open memory to each other.
  if (handle === 0n) {
    throw new FeatureNotSupportedError({
      library: 'NCCL',
      api: 'windows',
      reason: 'the devices of this communicator have no symmetric memory, or NCCL_CUMEM_ENABLE or NCCL_WIN_ENABLE is 0',
    })
  }
  return new Window(live, handle, memory, range, symmetric, giveBack)
}
