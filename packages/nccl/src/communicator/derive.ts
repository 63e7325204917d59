import { type PrimaryContext, releasePrimaryContexts, retainPrimaryContexts } from '@shoal/driver/basics'
import { type BackgroundWork, NativeMemory, offThread } from '@shoal/ffi'
import { type ncclComm_t, ncclCommCount, ncclCommUserRank, ncclResult_t } from '@shoal/nccl-sys'
import { checkNccl } from '../errors.js'
import { untilSettled } from '../lifetime/asyncStatus.js'
import { type LiveCommunicator, settled } from '../lifetime/live.js'
import { isFatal } from '../lifetime/watchdog.js'
import { blocks, type CommunicatorConfig, nativeConfig } from './config.js'
import { abortUnclaimed, type NativeCommunicator } from './init.js'

/** A call of NCCL that creates a communicator from another one. */
export interface Deriving {
  /** Name of the C function. */
  readonly api: string
  /** Whether the new communicator shares the resources of the old one. */
  readonly shares: boolean
  /** See `localRanksOfChild`. This rank gets no communicator if `childKey` is undefined. */
  readonly callKey: string
  readonly childKey: string | undefined
  /** The id with which new ranks join. */
  readonly id?: string
  /** Allocates memory that the call reads in addition to its config. */
  readonly memory?: () => NativeMemory
  readonly call: (out: NativeMemory, config: NativeMemory | null, memory: NativeMemory | null) => void
}

export interface Derived {
  readonly native: NativeCommunicator
  readonly rank: number
  readonly worldSize: number
}

const out32 = new Int32Array(1)

/** Returns NCCL's new communicator; undefined if this rank gets none. The config must be checked. */
export async function deriveNative(
  parent: LiveCommunicator,
  { api, memory: makeMemory, call }: Deriving,
  given: CommunicatorConfig | undefined,
  background: BackgroundWork,
): Promise<Derived | undefined> {
  const config = nativeConfig(given, api)
  const memory = makeMemory?.()
  const out = NativeMemory.allocate(8)
  const made = (): ncclComm_t => (out.u64[0] ?? 0n) as ncclComm_t
  const isBlocking = blocks(given, parent.isBlocking)
  // NCCL uses this memory until its call returns, even after the caller's wait has ended.
  const used = [out, ...(config === undefined ? [] : [config]), ...(memory === undefined ? [] : [memory])]
  let context: PrimaryContext | undefined
  let isUnderWay = false
  const isOver = (): boolean => parent.ended !== undefined
  const dispose = (): void => {
    for (const one of used) one.dispose()
  }
  try {
    context = (await retainPrimaryContexts([parent.deviceOrdinal], api))[0] as PrimaryContext
    const [status = 0] = await offThread({ context: context.handle, keep: used, background }, () =>
      call(out, config ?? null, memory ?? null),
    )
    checkNccl(status, api, parent.handle)
    // A nonblocking NCCL also returns success and provides the new communicator later.
    if (!parent.isBlocking || status === ncclResult_t.ncclInProgress) {
      isUnderWay = true
      await settled(parent, api)
      isUnderWay = false
    }
    const handle = made()
    if (handle === 0n) {
      const held = context
      context = undefined
      dispose()
      await releasePrimaryContexts([held])
      return undefined
    }
    await untilSettled(() => handle, api, isOver)
    const place = readPlace(handle)
    dispose()
    return { native: { handle, context, isBlocking }, ...place }
  } catch (error) {
    const free = async (): Promise<void> => {
      const handle = made()
      dispose()
      if (context === undefined) return
      if (handle === 0n) await releasePrimaryContexts([context])
      else await abortUnclaimed({ handle, context, isBlocking })
    }
    if (isUnderWay && (isOver() || isFatal(error))) {
      // NCCL may still write to the memory in the background until it has freed the parent.
      parent.whenFreed(() => {
        free().catch((problem: unknown) => process.emitWarning(`${api}: ${String(problem)}`, 'ShoalWarning'))
      })
    } else await free()
    throw error
  }
}

function readPlace(handle: ncclComm_t): { readonly rank: number; readonly worldSize: number } {
  checkNccl(ncclCommUserRank(handle, out32), 'ncclCommUserRank', handle)
  const rank = out32[0] as number
  checkNccl(ncclCommCount(handle, out32), 'ncclCommCount', handle)
  return { rank, worldSize: out32[0] as number }
}
