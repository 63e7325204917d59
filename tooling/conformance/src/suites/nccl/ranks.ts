import { type Device, DeviceBuffer, type Stream } from '@shoal/driver'
import { Communicator, group } from '@shoal/nccl'
import type { DType, TypedArrayOf } from '@shoal/types'
import type { CaseContext } from '../../suite.js'

/** One rank of a communicator, with a stream. */
export interface Rank {
  readonly communicator: Communicator
  readonly device: Device
  readonly stream: Stream
  readonly rank: number
}

/** Creates one communicator over the devices. It ends with the case. */
export async function makeRanks(t: CaseContext, devices: readonly Device[] = t.devices): Promise<Rank[]> {
  const communicators = await Communicator.initAll(devices)
  t.defer(async () => {
    for (const communicator of communicators) await communicator.destroy()
  })
  return communicators.map((communicator, rank) => {
    const device = devices[rank] as Device
    return { communicator, device, stream: t.own(device.createStream({ nonBlocking: true })), rank }
  })
}

/** Makes one call per rank, in one group, then waits for all streams. */
export async function together(ranks: readonly Rank[], call: (rank: Rank) => void): Promise<void> {
  group(() => {
    for (const rank of ranks) call(rank)
  })
  await settled(ranks)
}

/**
 * Waits for all streams. After 20 s it aborts the communicators, and the case fails. Otherwise an operation that never
 * ends would block freeing memory after the case, and the whole run.
 */
export async function settled(ranks: readonly Rank[]): Promise<void> {
  try {
    await Promise.all(ranks.map(({ stream }) => stream.synchronize({ timeout: 20_000 })))
  } catch (error) {
    await Promise.all(ranks.map(({ communicator }) => communicator.abort()))
    throw error
  }
}

/** Creates a buffer on each rank's device. The case disposes of them. */
export function upload<D extends DType>(
  t: CaseContext,
  ranks: readonly Rank[],
  dtype: D,
  data: (rank: number) => TypedArrayOf<D>,
): DeviceBuffer<D>[] {
  return ranks.map(({ device, rank }) => t.own(DeviceBuffer.from(device, data(rank), { dtype })))
}

export function zeros<D extends DType>(
  t: CaseContext,
  ranks: readonly Rank[],
  dtype: D,
  length: number,
): DeviceBuffer<D>[] {
  return ranks.map(({ device }) => t.own(DeviceBuffer.zeros(device, dtype, length)))
}

/** Returns an element of a list, and throws if the element does not exist. */
export function at<T>(list: readonly T[], index: number): T {
  const value = list[index]
  if (value === undefined) throw new RangeError(`there is no element ${index} among ${list.length}`)
  return value
}
