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

/** Resources of a communicator: the native handle and a hold on its context. */
export interface NativeCommunicator {
  readonly handle: ncclComm_t
  readonly context: PrimaryContext
  /** Whether calls of NCCL wait until they are done. Otherwise they return `ncclInProgress`. */
  readonly isBlocking: boolean
}

/** Options of a rank that joins a communicator. */
export interface Joining extends CommunicatorWaitOptions {
  readonly deviceOrdinal: number
  readonly rank: number
  readonly worldSize: number
  readonly ids: readonly UniqueId[]
  readonly config: CommunicatorConfig | undefined
  /** Whether the rank joins an existing communicator that grows. */
  readonly grows?: boolean
}

/** Creates one communicator per device in this process with one call of NCCL. */
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
    // The environment can make it nonblocking: NCCL_COMM_BLOCKING=0.
    if (isBlocking) return natives
    isUnderWay = true
    for (const { handle } of natives) await untilSettled(() => handle, 'ncclCommInitAll', isOver)
    return natives
  } catch (error) {
    // NCCL leaves nonblocking communicators to the caller, even if the init of one has failed.
    const handleOf = (index: number): ncclComm_t => (isUnderWay ? (handles.u64[index] ?? 0n) : 0n) as ncclComm_t
    await Promise.allSettled(contexts.map((context, index) => freeFailed(handleOf(index), context)))
    throw error
  } finally {
    handles.dispose()
    devices.dispose()
  }
}

/**
 * Creates one communicator per device in this process, each with a config. The ranks join with an id. If one fails, the
 * others are aborted.
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
 * Creates this process's rank of a communicator. Settles when all ranks have joined. With a nonblocking config NCCL
 * continues in the background, so the wait can end early and free everything. A blocking config occupies a thread.
 */
export async function joinNative(joining: Joining, api: string): Promise<NativeCommunicator> {
  const { deviceOrdinal, rank, worldSize, signal } = joining
  const what = `${api} of rank ${rank} of ${worldSize} on device ${deviceOrdinal}`
  throwIfAborted(signal, what)
  loadLibraries()
  // Check the config before anything is retained, because a wrong field is a separate error.
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
      // NCCL writes the handle when it is available.
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

/**
 * Frees a communicator after a failed init. NCCL frees a blocking one itself, and leaves a nonblocking one to the
 * caller.
 */
async function freeFailed(handle: ncclComm_t, context: PrimaryContext): Promise<void> {
  try {
    if (handle !== 0n) await offThread({ context: context.handle }, () => void ncclCommAbort(handle))
  } finally {
    await releasePrimaryContexts([context])
  }
}

/**
 * Rejects as soon as the signal fires or the time is up. NCCL cannot safely end a blocking init. So its thread
 * continues to wait for the other ranks, without keeping the process alive, and a late communicator is aborted
 * immediately.
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
      // If the init itself fails late, there is nothing to free, and the caller's promise has already rejected.
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

/** Frees a communicator whose caller no longer waits. */
export async function abortUnclaimed({ handle, context }: NativeCommunicator): Promise<void> {
  try {
    const [status = 0] = await offThread({ context: context.handle }, () => void ncclCommAbort(handle))
    await releasePrimaryContexts([context])
    checkNccl(status, 'ncclCommAbort')
  } catch (error) {
    // No caller waits, so no caller could catch the error.
    process.emitWarning(`a communicator whose init was given up could not be freed: ${String(error)}`, 'ShoalWarning')
  }
}

function throwIfAborted(signal: AbortSignal | undefined, operation: string): void {
  if (signal?.aborted === true) throw new AbortedError({ operation, cause: signal.reason })
}
