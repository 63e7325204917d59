import type { Device } from '@shoal/driver'
import { DeviceBuffer } from '@shoal/driver'
import { Communicator, group, ncclVersion } from '@shoal/nccl'
import { check, corrupt, randomData, referenceFor } from './data.js'
import type { Options } from './options.js'
import { Owned } from './owned.js'
import type { RunReport } from './report.js'

/** All devices, driven by this process. */
export async function runOneProcess(devices: readonly Device[], options: Options): Promise<RunReport> {
  const { elements, seed, iterations } = options
  const communicators = await Communicator.initAll(devices)
  try {
    using owned = new Owned()
    const ranks = communicators.map((communicator, rank) => {
      const device = devices[rank] as Device
      const send = owned.keep(DeviceBuffer.from(device, randomData(elements, seed, rank)))
      const recv = owned.keep(DeviceBuffer.allocate(device, 'f32', elements))
      return { communicator, device, send, recv, stream: owned.keep(device.createStream()) }
    })
    // One thread drives all communicators, so their calls have to be in one group.
    const allReduce = () =>
      group(() => {
        for (const { communicator, send, recv, stream } of ranks)
          communicator.allReduce(send, recv, { op: 'sum', stream })
      })
    const synchronize = () => Promise.all(ranks.map(({ communicator, stream }) => communicator.synchronize(stream)))

    allReduce() // the first one connects the ranks
    for (const { recv, stream } of ranks) recv.fill(Number.NaN, { stream }) // the timed calls write the results
    await synchronize()
    const start = performance.now()
    for (let i = 0; i < iterations; i += 1) allReduce()
    await synchronize()
    const seconds = (performance.now() - start) / 1000 / iterations

    const reference = referenceFor(elements, seed, ranks.length)
    const reports = []
    for (const [rank, { device, recv, stream }] of ranks.entries()) {
      const result = await recv.toArray({ stream })
      if (options.corrupt && rank === ranks.length - 1) corrupt(result)
      const comparison = check(result, reference)
      reports.push({ rank, ordinal: device.ordinal, name: device.name, software: device.isSoftware, comparison })
    }
    return {
      processes: 1,
      elements,
      iterations,
      seed,
      seconds,
      ncclVersion: ncclVersion().toString(),
      devices: reports,
    }
  } finally {
    await Promise.all(communicators.map((communicator) => communicator.destroy()))
  }
}
