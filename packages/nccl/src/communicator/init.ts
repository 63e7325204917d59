import { type PrimaryContext, releasePrimaryContexts, retainPrimaryContexts } from '@shoal/driver/basics'
import { type BackgroundWork, NativeMemory, offThread, onAbort } from '@shoal/ffi'
import {
  type ncclComm_t,
  ncclCommAbort,
  ncclCommGrow,
  ncclCommInitAll,
  ncclCommInitRank,
  ncclCommInitRankConfig,
  ncclCommInitRankScalable,
  ncclResult_t,
} from '@shoal/nccl-sys'
import { AbortedError, TimeoutError } from '@shoal/types'
import { checkNccl } from '../errors.js'
import { loadLibraries } from '../libraries.js'
import { untilSettled } from '../lifetime/asyncStatus.js'
import type { CommunicatorWaitOptions } from '../lifetime/waitOptions.js'
import { type CommunicatorConfig, nativeConfig } from './config.js'
import { UniqueId } from './uniqueId.js'

/** What a communicator owns: the native handle and a hold on the context it lives in. */
export interface NativeCommunicator {
  readonly handle: ncclComm_t
  readonly context: PrimaryContext
  /** Whether calls of NCCL wait until they are done; else they answer `ncclInProgress`. */
  readonly isBlocking: boolean
}

/** How a rank comes into a communicator. */
export interface Joining extends CommunicatorWaitOptions {
  readonly deviceOrdinal: number
  readonly rank: number
  readonly worldSize: number
  readonly ids: readonly UniqueId[]
  readonly config: CommunicatorConfig | undefined
  /** Whether the other ranks have a communicator already, which this one grows. */
  readonly grows?: boolean
}

/** One communicator a device, all in this process, by one call of NCCL. */
export async function initAllNative(
  ordinals: readonly number[],
  options: CommunicatorWaitOptions,
  api: string,
): Promise<NativeCommunicator[]> {
  throwIfAborted(options.signal, api)
  loadLibraries()
  const contexts = await retainPrimaryContexts(ordinals, api)
  const background: BackgroundWork = {}
  let isOver = false
  const made = initDevices(ordinals, contexts, background, () => isOver)
  return cancellable(
    made,
    options,
    `${api} of ${ordinals.length} ranks`,
    background,
    (natives) => natives,
    () => {
      isOver = true
    },
  )
}

async function initDevices(
  ordinals: readonly number[],
  contexts: readonly PrimaryContext[],
  background: BackgroundWork,
  isOver: () => boolean,
): Promise<NativeCommunicator[]> {
  const handles = NativeMemory.allocate(8 * ordinals.length)
  const devices = NativeMemory.allocate(4 * ordinals.length)
  let isUnderWay = false
  try {
    devices.i32.set(ordinals)
    const context = contexts[0]?.handle ?? 0n
    const [status = 0] = await offThread({ context, keep: [handles, devices], background }, () => {
      ncclCommInitAll(handles, ordinals.length, devices)
    })
    checkNccl(status, 'ncclCommInitAll')
    const isBlocking = status !== ncclResult_t.ncclInProgress
    const natives = contexts.map((one, index) => ({
      handle: (handles.u64[index] ?? 0n) as ncclComm_t,
      context: one,
      isBlocking,
    }))
    // Where the environment asks for it: NCCL_COMM_BLOCKING=0.
    if (isBlocking) return natives
    isUnderWay = true
    for (const { handle } of natives) await untilSettled(() => handle, 'ncclCommInitAll', isOver)
    return natives
  } catch (error) {
    // NCCL leaves those that are not blocking to the caller, also where the init of one has failed.
    const handleOf = (index: number): ncclComm_t => (isUnderWay ? (handles.u64[index] ?? 0n) : 0n) as ncclComm_t
    await Promise.allSettled(contexts.map((context, index) => freeFailed(handleOf(index), context)))
    throw error
  } finally {
    handles.dispose()
    devices.dispose()
  }
}

/**
 * One communicator a device, all in this process, each with a config: the ranks meet by an id. When one of them fails,
 * the others are given up.
 */
export async function initEachNative(
  ordinals: readonly number[],
  config: CommunicatorConfig,
  { signal, timeout }: CommunicatorWaitOptions,
  api: string,
): Promise<NativeCommunicator[]> {
  throwIfAborted(signal, api)
  loadLibraries()
  const ids = [UniqueId.create()]
  const oneFailed = new AbortController()
  const unsubscribe = onAbort(signal, () => oneFailed.abort(signal?.reason))
  let first: { readonly error: unknown } | undefined
  const joined = await Promise.allSettled(
    ordinals.map(async (deviceOrdinal, rank) => {
      try {
        const worldSize = ordinals.length
        return await joinNative({ deviceOrdinal, rank, worldSize, ids, config, signal: oneFailed.signal, timeout }, api)
      } catch (error) {
        first ??= { error }
        oneFailed.abort(error)
        throw error
      }
    }),
  )
  unsubscribe()
  const natives = joined.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  if (first === undefined) return natives
  await Promise.all(natives.map(abortUnclaimed))
  throw first.error
}

/**
 * This process's member of a communicator; settles once all ranks have come. A config that is not blocking lets NCCL go
 * on in the background, and then the wait can be ended and everything freed. A blocking one holds a thread of its own.
 */
export async function joinNative(joining: Joining, api: string): Promise<NativeCommunicator> {
  const { deviceOrdinal, rank, worldSize, signal } = joining
  const what = `${api} of rank ${rank} of ${worldSize} on device ${deviceOrdinal}`
  throwIfAborted(signal, what)
  loadLibraries()
  // Before anything is retained: a wrong field is an error of its own.
  const config = nativeConfig(joining.config, api)
  let contexts: readonly PrimaryContext[]
  try {
    contexts = await retainPrimaryContexts([deviceOrdinal], api)
    if (signal?.aborted === true) await releasePrimaryContexts(contexts)
    throwIfAborted(signal, what)
  } catch (error) {
    config?.dispose()
    throw error
  }
  const context = contexts[0] as PrimaryContext
  const background: BackgroundWork = {}
  let isOver = false
  const joined = join(joining, config, context, background, () => isOver)
  return cancellable(
    joined,
    joining,
    what,
    background,
    (native) => [native],
    () => {
      isOver = true
    },
  )
}

async function join(
  joining: Joining,
  config: NativeMemory | undefined,
  context: PrimaryContext,
  background: BackgroundWork,
  isOver: () => boolean,
): Promise<NativeCommunicator> {
  const { rank, worldSize, ids, grows } = joining
  const handle = NativeMemory.allocate(8)
  const id = ids[0] as UniqueId
  const idBytes = NativeMemory.allocate(128 * ids.length)
  for (const [index, one] of ids.entries()) idBytes.bytes.set(one.toBytes(), 128 * index)
  const keep = config === undefined ? [handle, idBytes] : [handle, idBytes, config]
  const configArgument = config ?? null
  let api: string
  let call: () => void
  if (grows === true) {
    api = 'ncclCommGrow'
    call = () => void ncclCommGrow(null, worldSize, idBytes, rank, handle, configArgument)
  } else if (ids.length > 1) {
    api = 'ncclCommInitRankScalable'
    call = () => void ncclCommInitRankScalable(handle, worldSize, rank, ids.length, idBytes, configArgument)
  } else if (config !== undefined) {
    api = 'ncclCommInitRankConfig'
    call = () => void ncclCommInitRankConfig(handle, worldSize, id.toBytes(), rank, config)
  } else {
    api = 'ncclCommInitRank'
    call = () => void ncclCommInitRank(handle, worldSize, id.toBytes(), rank)
  }
  let made = 0n as ncclComm_t
  try {
    const [status = 0] = await offThread({ context: context.handle, keep, background }, call)
    checkNccl(status, api)
    const isBlocking = status !== ncclResult_t.ncclInProgress && joining.config?.blocking !== false
    made = (handle.u64[0] ?? 0n) as ncclComm_t
    if (!isBlocking) {
      // NCCL writes the handle when it has it.
      const read = (): ncclComm_t => {
        made = (handle.u64[0] ?? 0n) as ncclComm_t
        return made
      }
      await untilSettled(read, api, isOver)
    }
    return { handle: made, context, isBlocking }
  } catch (error) {
    await freeFailed(made, context)
    throw error
  } finally {
    handle.dispose()
    idBytes.dispose()
    config?.dispose()
  }
}

/** NCCL frees a blocking communicator whose init fails, and leaves one that is not blocking to the caller. */
async function freeFailed(handle: ncclComm_t, context: PrimaryContext): Promise<void> {
  try {
    if (handle !== 0n) await offThread({ context: context.handle }, () => void ncclCommAbort(handle))
  } finally {
    await releasePrimaryContexts([context])
  }
}

/**
 * The same, but rejects as soon as the signal fires or the time is up. NCCL offers no safe way out of a blocking init,
 * so its thread goes on waiting for the other ranks, without keeping the process alive; a communicator that it gives
 * then is aborted at once.
 */
function cancellable<T>(
  joined: Promise<T>,
  { signal, timeout }: CommunicatorWaitOptions,
  operation: string,
  background: BackgroundWork,
  natives: (value: T) => readonly NativeCommunicator[],
  whenGivenUp: () => void = () => undefined,
): Promise<T> {
  if (signal === undefined && timeout === undefined) return joined
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    let unsubscribe = (): void => undefined
    const end = (): void => {
      clearTimeout(timer)
      unsubscribe()
    }
    const giveUp = (error: Error): void => {
      end()
      reject(error)
      whenGivenUp()
      background.release?.()
      // When the init itself fails in the end there is nothing to free, and its caller has been told already.
      joined.then(
        (value) => Promise.all(natives(value).map(abortUnclaimed)),
        () => undefined,
      )
    }
    joined.then(resolve, reject).finally(end)
    if (timeout !== undefined) {
      timer = setTimeout(() => giveUp(new TimeoutError({ operation, timeout })), timeout)
    }
    unsubscribe = onAbort(signal, () => giveUp(new AbortedError({ operation, cause: signal?.reason })))
  })
}

/** Frees a communicator that nobody waits for any more. */
export async function abortUnclaimed({ handle, context }: NativeCommunicator): Promise<void> {
  try {
    const [status = 0] = await offThread({ context: context.handle }, () => void ncclCommAbort(handle))
    await releasePrimaryContexts([context])
    checkNccl(status, 'ncclCommAbort')
  } catch (error) {
    // Nobody waits for this any more, so nobody could catch it.
    process.emitWarning(`a communicator whose init was given up could not be freed: ${String(error)}`, 'ShoalWarning')
  }
}

function throwIfAborted(signal: AbortSignal | undefined, operation: string): void {
  if (signal?.aborted === true) throw new AbortedError({ operation, cause: signal.reason })
}
