import { type Device, DeviceBuffer } from '@shoal/driver'
import { Communicator, UniqueId } from '@shoal/nccl'

/** Microseconds of a rank's start. */
export interface StartTimes {
  /** Of `Communicator.initRank`, from the call until its promise is settled. */
  readonly init: number
  /** Of the first all-reduce, with the wait for it. */
  readonly first: number
}

/** Does what needs no other rank; the function that it returns does the rest, as native/firstAllReduce.c. */
export function prepareRank(device: Device): (rank: number, worldSize: number, id: Uint8Array) => Promise<StartTimes> {
  const stream = device.createStream({ nonBlocking: true })
  const buffer = DeviceBuffer.zeros(device, 'f32', 256)
  return async (rank, worldSize, id) => {
    const begin = performance.now()
    const communicator = await Communicator.initRank({ device, rank, worldSize, id: UniqueId.fromBytes(id) })
    const made = performance.now()
    communicator.allReduce(buffer, buffer, { op: 'sum', stream })
    await stream.synchronize()
    const done = performance.now()
    return { init: (made - begin) * 1000, first: (done - made) * 1000 }
  }
}
