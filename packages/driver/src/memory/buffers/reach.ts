import {
  CUmemLocation,
  CUmemLocationType,
  type CUmemoryPool,
  CUpointer_attribute,
  cuMemGetAccess,
  cuMemPoolGetAccess,
  cuPointerGetAttributes,
  withContext,
} from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { isMemoryLike, type MemoryRange, propertyOf } from '@shoal/types'
import { accessEpoch, isPeerOf, peerOrdinals, type Reaching } from '../../core/context/peers.js'
import { Status } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { toSpan } from '../../core/ranges/span.js'

/** What a device lacks to use some memory. */
type Missing = 'peer' | 'mapping' | 'pool'

const hints: { readonly [M in Missing]: string } = {
  peer: 'enablePeerAccess() lets it use that where the devices can',
  mapping: 'setAccess() of the mapping, or `sharedWith` of the memory, grants it access',
  pool: 'setAccess() of its pool grants it access',
}

/** The context that was last found to reach a memory, and the epoch of that check. */
export interface ReachCell {
  reachedBy: Reaching | undefined
  reachedIn: number
}

const cellKey: unique symbol = Symbol('reach')
/** Cells for frozen answers of other owners. */
const cells = new WeakMap<MemoryRange, ReachCell>()

/** Creates an immutable answer of the memory protocol for memory that devices use by grants. */
export function grantedRange(range: Omit<MemoryRange, 'access' | 'version'>): MemoryRange {
  const cell: ReachCell = { reachedBy: undefined, reachedIn: accessEpoch.current }
  const answer: MemoryRange = { version: 0, ...range, access: 'granted' }
  return Object.freeze(Object.defineProperty(answer, cellKey, { value: cell }))
}

/** Returns the cell of an immutable answer; undefined for others. */
function cellOf(range: MemoryRange & { readonly [cellKey]?: ReachCell }): ReachCell | undefined {
  const cell = range[cellKey] ?? cells.get(range)
  if (cell !== undefined || !Object.isFrozen(range)) return cell
  const made: ReachCell = { reachedBy: undefined, reachedIn: accessEpoch.current }
  cells.set(range, made)
  return made
}

/**
 * Checks that kernels of a context can use memory. Ordinary memory of the context's own device always passes. For other
 * memory, asks the driver, and caches a positive answer in `cell` until any access ends.
 * @throws TypeError
 */
export function requireReach(
  context: Reaching,
  { address, deviceOrdinal }: Pick<MemoryRange, 'address' | 'deviceOrdinal'>,
  cell: ReachCell | undefined,
  api: string,
  name: string,
): void {
  const missing = missingFor(context, address, deviceOrdinal, cell)
  if (missing === undefined) return
  const { ordinal } = context.device
  const whose = deviceOrdinal < 0 ? 'of the host' : `of device ${deviceOrdinal}`
  const what = missing === 'mapping' ? `memory ${whose} that is mapped without access for it` : `memory ${whose}`
  throw new TypeError(
    `${api}: ${name} must be memory that device ${ordinal}, where the kernel runs, can use, not ${what}; ${hints[missing]}`,
  )
}

/**
 * A graph's check, at each launch, that a kernel still reaches memory. The key is the same for the same context and
 * memory.
 */
export interface ReachNeed {
  readonly key: object
  readonly check: () => void
}

const launchApi = 'GraphExec.launch'
const needKeys = new WeakMap<Reaching, WeakMap<object, object>>()

/** Returns a kernel's check for a memory argument; undefined for memory that its device can always use. */
export function reachNeed(context: Reaching, argument: unknown): ReachNeed | undefined {
  const memory = propertyOf(argument, 'parameterType') === 'tensorMap' ? propertyOf(argument, 'memory') : argument
  if (!isMemoryLike(memory) || isOwn(context, toSpan(memory, launchApi))) return undefined
  const keys = needKeys.get(context) ?? new WeakMap<object, object>()
  needKeys.set(context, keys)
  const key = keys.get(memory) ?? {}
  keys.set(memory, key)
  return {
    key,
    check: () => requireReachable(context, toSpan(memory, launchApi), launchApi, 'an argument of a kernel'),
  }
}

/** Whether copies in a context reach memory: ordinary memory of any device, or other memory with access. */
export function isReachedByCopies(context: Reaching, range: MemoryRange): boolean {
  const missing = isOwn(context, range)
    ? undefined
    : missingFor(context, range.address, range.deviceOrdinal, cellOf(range))
  return missing === undefined || missing === 'peer'
}

/** Whether a context was found to reach a memory, and no access ended since. */
export function isKnownToReach(context: Reaching, cell: ReachCell): boolean {
  return cell.reachedBy === context && cell.reachedIn === accessEpoch.current
}

function missingFor(
  context: Reaching,
  address: bigint,
  deviceOrdinal: number,
  cell: ReachCell | undefined,
): Missing | undefined {
  if (cell !== undefined && isKnownToReach(context, cell)) return undefined
  const missing = whatIsMissing(context, address, deviceOrdinal)
  if (missing !== undefined || cell === undefined) return missing
  cell.reachedBy = context
  cell.reachedIn = accessEpoch.current
  return undefined
}

/** {@link requireReach} for an answer of the memory protocol. @throws TypeError */
export function requireReachable(context: Reaching, range: MemoryRange, api: string, name: string): void {
  if (isOwn(context, range)) return
  requireReach(context, range, cellOf(range), api, name)
}

const primaries = new Map<bigint, Reaching>()

/**
 * Checks memory of the context's own device. The device can use it, unless access to the memory depends on grants.
 * @throws TypeError when the device has no access
 */
export function requireGranted(context: bigint, ordinal: number, range: MemoryRange, api: string, name: string): void {
  if (range.access === undefined) return
  const known = primaries.get(context)
  const reaching = known?.device.ordinal === ordinal ? known : { _handle: context, device: { ordinal } }
  primaries.set(context, reaching)
  requireReachable(reaching, range, api, name)
}

/** Whether a context's device can use memory without checks: its own ordinary memory, or memory of the host. */
export function isOwn(context: Reaching, { access, deviceOrdinal }: MemoryRange): boolean {
  return access === undefined && (deviceOrdinal < 0 || deviceOrdinal === context.device.ordinal)
}

/** Memory for the driver's answers about an address. */
interface Answers {
  readonly codes: Uint32Array
  readonly pointers: BigUint64Array
  readonly memory: NativeMemory
}

const asked = [
  CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT,
  CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
  CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED,
  CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
  CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
] as const
const hostMemory = 1n
let answers: Answers | undefined

/** Returns what the context lacks. Contexts, pools and mappings each have different access rules. */
function whatIsMissing(context: Reaching, address: bigint, deviceOrdinal: number): Missing | undefined {
  answers ??= makeAnswers()
  const { codes, pointers, memory } = answers
  memory.u64.fill(0n)
  const status = withContext(context._handle, () =>
    cuPointerGetAttributes(asked.length, codes, pointers, address),
  ) as number
  const [owner = 0n, type = 0n, isManaged = 0n, ordinal = 0n, pool = 0n] = status === Status.success ? memory.u64 : []
  const own = context.device.ordinal
  if (isManaged !== 0n) return undefined
  if (pool !== 0n) {
    return mayUse((out, location) => cuMemPoolGetAccess(out, pool as CUmemoryPool, location), own) ? undefined : 'pool'
  }
  if (owner !== 0n) {
    const isReached = type === hostMemory || Number(ordinal) === own || owner === context._handle
    return isReached || isPeerOf(context, owner) ? undefined : 'peer'
  }
  const isMapped = mayUse((out, location) => cuMemGetAccess(out, location, address), own)
  if (isMapped !== undefined) return isMapped ? undefined : 'mapping'
  // The driver does not know this memory.
  return deviceOrdinal < 0 || deviceOrdinal === own || peerOrdinals(context).includes(deviceOrdinal)
    ? undefined
    : 'peer'
}

function makeAnswers(): Answers {
  const memory = NativeMemory.allocate(asked.length * 8)
  const pointers = BigUint64Array.from(asked, (_, index) => memory.address + BigInt(index * 8))
  return { codes: Uint32Array.from(asked), pointers, memory }
}

/** Whether a device can read or write; undefined if the driver returns no answer. */
function mayUse(ask: (out: NativeMemory, location: Uint8Array) => number, ordinal: number): boolean | undefined {
  const out = scratch()
  out.u64[0] = 0n
  const location = CUmemLocation.allocate({ type: CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, id: ordinal })
  return ask(out, location) === Status.success ? out.u32[0] !== 0 : undefined
}
