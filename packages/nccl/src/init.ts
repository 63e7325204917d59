import { ensureContextFunctions } from '@shoal/cuda-sys/driver'
import { type BackgroundWork, NativeMemory, offThread } from '@shoal/ffi'
import { type ncclComm_t, ncclCommAbort, ncclCommInitAll, ncclCommInitRank } from '@shoal/nccl-sys'
import { AbortedError } from '@shoal/types'
import { checkNccl } from './errors.js'
import { type PrimaryContext, releasePrimaryContexts, retainPrimaryContexts } from './primaryContexts.js'
import type { UniqueId } from './uniqueId.js'
import { ncclVersion } from './version.js'

/** What a communicator owns: the native handle and a hold on the context it lives in. */
export interface NativeCommunicator {
  readonly handle: ncclComm_t
  readonly context: PrimaryContext
}

/** One communicator a device, all in this process. */
export async function initAllNative(ordinals: readonly number[], api: string): Promise<NativeCommunicator[]> {
  loadLibraries()
  const contexts = await retainPrimaryContexts(ordinals, api)
  const handles = NativeMemory.allocate(8 * ordinals.length)
  const devices = NativeMemory.allocate(4 * ordinals.length)
  try {
    devices.i32.set(ordinals)
    const [status = 0] = await offThread({ context: contexts[0]?.handle ?? 0n, keep: [handles, devices] }, () => {
      ncclCommInitAll(handles, ordinals.length, devices)
    })
    checkNccl(status, 'ncclCommInitAll')
    return contexts.map((context, index) => ({ handle: (handles.u64[index] ?? 0n) as ncclComm_t, context }))
  } catch (error) {
    await releasePrimaryContexts(contexts)
    throw error
  } finally {
    handles.dispose()
    devices.dispose()
  }
}

/** This process's member of a communicator; settles once all ranks have come. */
export async function initRankNative(
  ordinal: number,
  rank: number,
  worldSize: number,
  id: UniqueId,
  signal: AbortSignal | undefined,
  api: string,
): Promise<NativeCommunicator> {
  throwIfAborted(signal)
  loadLibraries()
  const contexts = await retainPrimaryContexts([ordinal], api)
  const context = contexts[0] as PrimaryContext
  if (signal?.aborted === true) await releasePrimaryContexts(contexts)
  throwIfAborted(signal)
  const background: BackgroundWork = {}
  const joined = join(context, rank, worldSize, id, background)
  return signal === undefined ? joined : abandonable(joined, signal, background)
}

async function join(
  context: PrimaryContext,
  rank: number,
  worldSize: number,
  id: UniqueId,
  background: BackgroundWork,
): Promise<NativeCommunicator> {
  const handle = NativeMemory.allocate(8)
  try {
    const [status = 0] = await offThread({ context: context.handle, keep: [handle], background }, () => {
      ncclCommInitRank(handle, worldSize, id.toBytes(), rank)
    })
    checkNccl(status, 'ncclCommInitRank')
    return { handle: (handle.u64[0] ?? 0n) as ncclComm_t, context }
  } catch (error) {
    await releasePrimaryContexts([context])
    throw error
  } finally {
    handle.dispose()
  }
}

/**
 * The same, but rejects as soon as the signal fires. NCCL offers no safe way out of a blocking init, so its thread
 * goes on waiting for the other ranks, without keeping the process alive; what it brings home then is aborted at once.
 */
function abandonable(
  joined: Promise<NativeCommunicator>,
  signal: AbortSignal,
  background: BackgroundWork,
): Promise<NativeCommunicator> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(new AbortedError({ operation: 'Communicator.initRank', cause: signal.reason }))
      background.release?.()
      // When the init itself fails in the end there is nothing to free, and its caller has been told already.
      joined.then(abandon, () => undefined)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    joined.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

async function abandon({ handle, context }: NativeCommunicator): Promise<void> {
  try {
    const [status = 0] = await offThread({ context: context.handle }, () => {
      ncclCommAbort(handle)
    })
    await releasePrimaryContexts([context])
    checkNccl(status, 'ncclCommAbort')
  } catch (error) {
    // Nobody waits for this any more, so nobody could catch it.
    process.emitWarning(
      `a communicator whose initRank had been aborted could not be freed: ${String(error)}`,
      'ShoalWarning',
    )
  }
}

/** Before any call is recorded for another thread: a missing or too old library shows at once, with its version. */
function loadLibraries(): void {
  ensureContextFunctions()
  ncclVersion()
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new AbortedError({ operation: 'Communicator.initRank', cause: signal.reason })
}
