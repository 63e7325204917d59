import { emptyKernels } from '@shoal/cli/bench'
import { Device, DeviceBuffer, type Kernel, Module, type Stream } from '@shoal/driver'
import { Graph } from '@shoal/driver/graph'
import { Communicator, group } from '@shoal/nccl'
import { floats, kernelCount } from './capturedStep.js'
import { type Subject, subjectOf } from './turns.js'

const burst = 10

interface Rank {
  readonly stream: Stream
  readonly kernel: Kernel<readonly []>
  readonly buffer: DeviceBuffer<'f32'>
  readonly communicator: Communicator
}

/** The subjects for `startNodeSubjects`, for this number of devices. */
export async function makeSubjects([count = '']: readonly string[]): Promise<readonly Subject[]> {
  const devices = [...Device.all()].slice(0, Number(count))
  const [first] = devices as [Device]
  const modules = devices.map((device) => Module.loadSync(device, emptyKernels))
  const communicators = await Communicator.initAll(devices)
  const ranks = devices.map((device, index): Rank => {
    const buffer = DeviceBuffer.zeros(device, 'f32', floats)
    return {
      stream: device.createStream({ nonBlocking: true }),
      kernel: (modules[index] as Module).kernel('empty0', []),
      buffer,
      communicator: communicators[index] as Communicator,
    }
  })
  const wait = (): void => {
    for (const { stream } of ranks) stream.synchronizeSync()
  }
  const queue = stepOf(ranks)
  // Connects the ranks, because connecting cannot be captured.
  queue()
  wait()
  const graph = capture(ranks, queue)
  const exec = graph.instantiate()
  const [{ stream }] = ranks as [Rank]
  exec.upload(stream)
  wait()
  const time = (loop: () => void, count: number): number =>
    first.primaryContext.run(() => {
      let nanoseconds = 0n
      for (let turn = 0; turn < count; turn += 1) {
        const start = process.hrtime.bigint()
        for (let call = 0; call < burst; call += 1) loop()
        nanoseconds += process.hrtime.bigint() - start
        wait()
      }
      return Number(nanoseconds) / (count * burst)
    })
  return [subjectOf('shoal', { launch: () => exec.launch(stream), queue }, time)]
}

function stepOf(ranks: readonly Rank[]): () => void {
  const reduce = (): void => {
    for (const { communicator, buffer, stream } of ranks) communicator.allReduce(buffer, buffer, { stream })
  }
  const configs = ranks.map(({ stream }) => ({ grid: 1, block: 32, stream }))
  return () => {
    for (const [index, { kernel }] of ranks.entries()) {
      const config = configs[index] as (typeof configs)[0]
      for (let launch = 0; launch < kernelCount; launch += 1) kernel.launch(config)
    }
    group(reduce)
  }
}

/**
 * Captures all devices in one graph. The other streams join the capture of the first stream and are joined back into
 * it.
 */
function capture(ranks: readonly Rank[], queue: () => void): Graph {
  const [{ stream: first }] = ranks as [Rank]
  return Graph.capture(first, () => {
    const start = first.record()
    for (const { stream } of ranks.slice(1)) stream.waitEvent(start)
    queue()
    for (const { stream } of ranks.slice(1)) first.waitEvent(stream.record())
  })
}
