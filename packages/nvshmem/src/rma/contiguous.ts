import { copyInSlices, isCapturing, orderBehind } from '@shoal/driver/basics'
import { NativeMemory } from '@shoal/ffi'
import type {
  cudaStream_t,
  nvshmem_float_get,
  nvshmem_float_get_nbi,
  nvshmem_float_put,
  nvshmem_float_put_nbi,
  nvshmemx_float_get_nbi_on_stream,
  nvshmemx_float_get_on_stream,
  nvshmemx_float_put_nbi_on_stream,
  nvshmemx_float_put_on_stream,
} from '@shoal/nvshmem-sys'
import {
  doneNow,
  isPlainObject,
  isRevoked,
  type MemoryLike,
  memoryProtocol,
  requireInteger,
  requireOptions,
  type StreamLike,
  streamProtocol,
} from '@shoal/types'
import { type Family, sizedFamily } from '../families.js'
import { SymmetricBuffer } from '../heap/symmetricBuffer.js'
import {
  checkTransfer,
  type LocalMemory,
  type LocalOperand,
  streamHandleAt,
  type Transfer,
  transferRoles,
} from '../operands.js'
import { waitOf } from '../queue/callQueue.js'
import type { LiveSession } from '../queue/liveSession.js'
import { startOnStream } from '../queue/onStream.js'
import { callSyncBehind, runBehind } from '../queue/runBehind.js'
import type { Direction, QueuedTransfer, StreamCall } from './recentTransfers.js'
import {
  type StreamTransferOptions,
  streamTransferKeys,
  type TransferOptions,
  transferKeys,
  type WaitingTransferOptions,
  waitingTransferKeys,
} from './types.js'

const families = {
  put: sizedFamily<typeof nvshmem_float_put>('nvshmem_', 'nvshmem_put', '_put', ''),
  get: sizedFamily<typeof nvshmem_float_get>('nvshmem_', 'nvshmem_get', '_get', ''),
}

const nonBlocking = {
  put: sizedFamily<typeof nvshmem_float_put_nbi>('nvshmem_', 'nvshmem_put', '_put_nbi', '_nbi'),
  get: sizedFamily<typeof nvshmem_float_get_nbi>('nvshmem_', 'nvshmem_get', '_get_nbi', '_nbi'),
}

const onStream = {
  put: sizedFamily<typeof nvshmemx_float_put_on_stream>('nvshmemx_', 'nvshmemx_put', '_put_on_stream', '_on_stream'),
  get: sizedFamily<typeof nvshmemx_float_get_on_stream>('nvshmemx_', 'nvshmemx_get', '_get_on_stream', '_on_stream'),
}

const nonBlockingOnStream = {
  put: sizedFamily<typeof nvshmemx_float_put_nbi_on_stream>(
    'nvshmemx_',
    'nvshmemx_put',
    '_put_nbi_on_stream',
    '_nbi_on_stream',
  ),
  get: sizedFamily<typeof nvshmemx_float_get_nbi_on_stream>(
    'nvshmemx_',
    'nvshmemx_get',
    '_get_nbi_on_stream',
    '_nbi_on_stream',
  ),
}

type HostCall = typeof nvshmem_float_put

const names = {
  put: {
    wait: 'Session.put',
    sync: 'Session.putSync',
    start: 'Session.putNonBlocking',
    queue: 'Session.putOnStream',
    queueStart: 'Session.putNonBlockingOnStream',
  },
  get: {
    wait: 'Session.get',
    sync: 'Session.getSync',
    start: 'Session.getNonBlocking',
    queue: 'Session.getOnStream',
    queueStart: 'Session.getNonBlockingOnStream',
  },
} as const

function check(
  live: LiveSession,
  direction: Direction,
  target: unknown,
  source: unknown,
  arrays: boolean,
  count: number | undefined,
  api: string,
): Transfer {
  return direction === 'put'
    ? checkTransfer(live, transferRoles.put, target, source, arrays, count, api)
    : checkTransfer(live, transferRoles.get, source, target, arrays, count, api)
}

/** Makes the call. NVSHMEM takes the target first, whichever side it is. */
function invoke(
  direction: Direction,
  call: HostCall,
  transfer: Transfer,
  local: bigint | Uint8Array,
  pe: number,
): void {
  if (direction === 'put') call(transfer.remote, local, transfer.count, pe)
  else call(local, transfer.remote, transfer.count, pe)
}

function functionFor<F>(family: Family<F>, transfer: Transfer): F {
  // Every dtype has a function of its type or of its size.
  return family(transfer.dtype) as F
}

/** Makes a transfer; the promise settles when the local side is reusable (put) or written (get). */
export async function transferAndWait(
  live: LiveSession,
  direction: Direction,
  target: SymmetricBuffer | LocalOperand,
  source: SymmetricBuffer | LocalOperand,
  options: WaitingTransferOptions,
): Promise<void> {
  const api = names[direction].wait
  requireOptions(options, api, waitingTransferKeys)
  const pe = requireInteger(options.pe, api, 'pe', 0, live.peCount - 1)
  const transfer = check(live, direction, target, source, true, options.count, api)
  const call = functionFor(families[direction], transfer)
  const { array, bytes } = transfer
  if (array === undefined) {
    const record = (): void => invoke(direction, call, transfer, transfer.local, pe)
    await runBehind(live, transfer.pending, api, record, {
      wait: waitOf(options),
      keep: [target, source],
      operands: [target, source],
    })
    return
  }
  // Calls on another thread accept no memory of the JavaScript heap.
  const memory = NativeMemory.allocate(bytes)
  try {
    const after =
      direction === 'put' ? copyInSlices(memory.bytes, array.subarray(0, bytes), `${api}: source`) : undefined
    const record = (): void => invoke(direction, call, transfer, memory.address, pe)
    await live.queue.run(api, record, { wait: waitOf(options), keep: [memory, target, source], after })
    if (direction === 'get') await copyInSlices(array, memory.bytes, `${api}: target`)
  } finally {
    live.queue.free(memory)
  }
}

export function transferSync(
  live: LiveSession,
  direction: Direction,
  target: SymmetricBuffer | LocalOperand,
  source: SymmetricBuffer | LocalOperand,
  options: TransferOptions,
): void {
  const api = names[direction].sync
  requireOptions(options, api, transferKeys)
  const pe = requireInteger(options.pe, api, 'pe', 0, live.peCount - 1)
  const transfer = check(live, direction, target, source, true, options.count, api)
  const call = functionFor(families[direction], transfer)
  const local = transfer.array ?? transfer.local
  callSyncBehind(live, transfer.pending, api, () => invoke(direction, call, transfer, local, pe))
}

/** Starts a transfer; `quiet()` completes it. */
export function startTransfer(
  live: LiveSession,
  direction: Direction,
  target: LocalMemory,
  source: LocalMemory,
  options: TransferOptions,
): Promise<void> {
  const api = names[direction].start
  try {
    requireOptions(options, api, transferKeys)
    const pe = requireInteger(options.pe, api, 'pe', 0, live.peCount - 1)
    const transfer = check(live, direction, target, source, false, options.count, api)
    const call = functionFor(nonBlocking[direction], transfer)
    live.untilQuiet.add(target).add(source)
    const record = (): void => invoke(direction, call, transfer, transfer.local, pe)
    const { pending } = transfer
    if (pending === undefined || pending === null) return live.queue.start(api, record, [target, source])
    // This thread must not wait for the producer.
    return runBehind(live, pending, api, record, { operands: [target, source] }).then(() => undefined)
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Queues a transfer on a stream. This is the hot path, so it allocates nothing unnecessary. */
export function queueTransfer(
  live: LiveSession,
  direction: Direction,
  target: LocalMemory,
  source: LocalMemory,
  options: StreamTransferOptions,
  isNonBlocking: boolean,
): Promise<void> {
  const api = isNonBlocking ? names[direction].queueStart : names[direction].queue
  try {
    const last = live.recent[isNonBlocking ? nonBlockingKind[direction] : direction]
    const isKnown =
      last !== undefined && isSame(last, direction, target, source, options, api) && isPlainTransfer(options)
    const transfer = isKnown ? last : checkQueued(live, direction, target, source, options, isNonBlocking, api)
    if (isCapturing() || !live.queue.idle) return queueApart(live, transfer, target, source, options.stream, api)
    live.queue.enter()
    makeQueued(transfer)
    return doneNow()
  } catch (error) {
    return refuseQueued(error, live, direction, target, source, options, isNonBlocking, api)
  }
}

/** Reports an unreadable argument, such as a revoked proxy: checkQueued finds which one. */
async function refuseQueued(
  error: unknown,
  live: LiveSession,
  direction: Direction,
  target: LocalMemory,
  source: LocalMemory,
  options: StreamTransferOptions,
  isNonBlocking: boolean,
  api: string,
): Promise<void> {
  if (!isPlainObject(options) || [target, source, options.stream].some(isRevoked)) {
    checkQueued(live, direction, target, source, options, isNonBlocking, api)
  }
  throw error
}

const nonBlockingKind = { put: 'putNonBlocking', get: 'getNonBlocking' } as const

/** A separate function: one that makes a closure allocates for it in every call, even on paths without it. */
function queueApart(
  live: LiveSession,
  transfer: QueuedTransfer,
  target: LocalMemory,
  source: LocalMemory,
  given: unknown,
  api: string,
): Promise<void> {
  const { stream } = transfer
  const call = (): void => makeQueued(transfer)
  return startOnStream(live, { api, stream, given, call, uses: [target, source] })
}

function makeQueued({ call, to, from, count, pe, stream }: QueuedTransfer): void {
  call(to, from, count, pe, stream)
}

/**
 * True if a transfer repeats the last checked one, as in a loop.
 *
 * Only frozen answers are kept, so the same objects mean the same memory and stream. Reading them throws after
 * disposal.
 */
function isSame(
  last: QueuedTransfer,
  direction: Direction,
  target: LocalMemory,
  source: LocalMemory,
  options: StreamTransferOptions,
  api: string,
): boolean {
  const [remote, local] = direction === 'put' ? [target, source] : [source, target]
  return (
    options.pe === last.pe &&
    options.count === last.requestedCount &&
    SymmetricBuffer._is(remote) &&
    remote._rangeFor(api) === last.symmetric &&
    (local as Partial<MemoryLike> | null | undefined)?.[memoryProtocol] === last.own &&
    (options.stream as StreamLike | null | undefined)?.[streamProtocol] === last.queue
  )
}

/** A fast requireOptions for options that were just read: V8 knows their shape and calls nothing. */
function isPlainTransfer(options: StreamTransferOptions): boolean {
  if (Object.getPrototypeOf(options) !== Object.prototype) return false
  for (const key in options) if (key !== 'pe' && key !== 'stream' && key !== 'count') return false
  return true
}

function checkQueued(
  live: LiveSession,
  direction: Direction,
  target: LocalMemory,
  source: LocalMemory,
  options: StreamTransferOptions,
  isNonBlocking: boolean,
  api: string,
): QueuedTransfer {
  requireOptions(options, api, streamTransferKeys)
  const pe = requireInteger(options.pe, api, 'pe', 0, live.peCount - 1)
  const transfer = check(live, direction, target, source, false, options.count, api)
  const queue = streamHandleAt(live, options.stream, api)
  const call: StreamCall = functionFor(isNonBlocking ? nonBlockingOnStream[direction] : onStream[direction], transfer)
  const { remote, local, count } = transfer
  const [to, from] = direction === 'put' ? [remote, local] : [local, remote]
  const [there, here] = direction === 'put' ? [target, source] : [source, target]
  const symmetric = (there as SymmetricBuffer)._rangeFor(api)
  const own = (here as MemoryLike)[memoryProtocol]
  orderBehind(queue.handle, live.context, own)
  const checked: QueuedTransfer = {
    symmetric,
    own,
    queue,
    requestedCount: options.count,
    call,
    to,
    from,
    count,
    pe,
    stream: queue.handle as cudaStream_t,
  }
  const isLasting = Object.isFrozen(own) && own.stream === undefined && own.address === local && Object.isFrozen(queue)
  live.recent[isNonBlocking ? nonBlockingKind[direction] : direction] = isLasting ? checked : undefined
  return checked
}
