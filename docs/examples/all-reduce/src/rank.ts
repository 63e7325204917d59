import { Device, DeviceBuffer } from '@shoal/driver'
import { Communicator, ncclVersion, UniqueId } from '@shoal/nccl'
import { check, corrupt, randomData, referenceFor } from './data.js'
import { describeError } from './failure.js'
import type { ToParent, ToRank } from './messages.js'
import type { Options } from './options.js'

/** Runs one rank in a separate process. */
export async function runRank(rank: number, ranks: number, options: Options): Promise<void> {
  // Once the parent is gone, no process waits for the result, and the other ranks end as well.
  process.once('disconnect', () => process.exit(2))
  try {
    await send(await work(rank, ranks, options))
  } catch (error) {
    await send({ kind: 'failed', message: describeError(error, options.verbose) })
    process.exitCode = 2
  } finally {
    process.removeAllListeners('disconnect')
    process.disconnect()
  }
}

async function work(rank: number, ranks: number, options: Options): Promise<ToParent> {
  const { elements, seed, iterations } = options
  const device = Device.get(rank)
  const communicator = await Communicator.initRank({ device, rank, worldSize: ranks, id: await sharedId(rank) })
  try {
    using source = DeviceBuffer.from(device, randomData(elements, seed, rank))
    using target = DeviceBuffer.allocate(device, 'f32', elements)
    using stream = device.createStream()

    communicator.allReduce(source, target, { op: 'sum', stream }) // the first one connects the ranks
    target.fill(Number.NaN, { stream }) // the timed calls write the results
    await communicator.synchronize(stream)
    const start = performance.now()
    for (let i = 0; i < iterations; i += 1) communicator.allReduce(source, target, { op: 'sum', stream })
    await communicator.synchronize(stream)
    const seconds = (performance.now() - start) / 1000 / iterations

    const result = await target.toArray({ stream })
    if (options.corrupt && rank === ranks - 1) corrupt(result)
    const comparison = check(result, referenceFor(elements, seed, ranks))
    const report = { rank, ordinal: device.ordinal, name: device.name, software: device.isSoftware, comparison }
    return { kind: 'done', report, seconds, ncclVersion: ncclVersion().toString() }
  } finally {
    await communicator.destroy()
  }
}

/** Rank 0 makes the id and sends it to the parent, which forwards it to the other ranks. */
async function sharedId(rank: number): Promise<UniqueId> {
  if (rank === 0) {
    const id = UniqueId.create()
    await send({ kind: 'id', id: id.toString() })
    return id
  }
  const { id } = await new Promise<ToRank>((resolve) =>
    process.once('message', (message) => resolve(message as ToRank)),
  )
  return UniqueId.fromBase64(id)
}

function send(message: ToParent): Promise<void> {
  return new Promise((resolve, reject) => {
    if (process.send === undefined) reject(new Error('this process was not started as a rank'))
    else process.send(message, (error: Error | null) => (error === null ? resolve() : reject(error)))
  })
}
