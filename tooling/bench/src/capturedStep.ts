import { emptyKernels } from '@shoal/cli/bench'
import { type Device, DeviceBuffer, type Kernel, Module, type Stream } from '@shoal/driver'
import { Graph } from '@shoal/driver/graph'
import { Communicator, group } from '@shoal/nccl'
import { atMost, type Bar } from './bars.js'
import { compileWithCuda, writeTemporary } from './compile.js'
import { aboutDevices, devicesFor, libraryPath } from './devices.js'
import type { Outcome, RunOptions } from './options.js'
import { SubjectProcess } from './subjectProcess.js'
import { type Case, compiled, printRows, subjectIn, subjectOf, takeTurns } from './turns.js'

const kernelCount = 20
const floats = 256 * 1024
const burst = 10
const mostDevices = 2

interface Rank {
  readonly stream: Stream
  readonly kernel: Kernel<readonly []>
  readonly buffer: DeviceBuffer<'f32'>
  readonly communicator: Communicator
}

/** What a thread pays to start a step of training on two devices: kernels and an all-reduce, captured in a graph or call by call. */
export async function benchCapturedStep(options: RunOptions): Promise<Outcome> {
  const devices = devicesFor(options).slice(0, options.devices ?? mostDevices)
  const [first] = devices as [Device]
  const ptxFile = writeTemporary('step.ptx', emptyKernels)
  const words = [libraryPath('nccl'), ptxFile, String(devices.length), String(kernelCount), String(floats)]
  const [c] = await SubjectProcess.start('capturedStep.c', compileWithCuda('capturedStep.c'), words)
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
  // Connects the ranks: what that takes cannot be captured.
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
  const what = `${kernelCount} kernels and an all-reduce on ${devices.length} ${devices.length === 1 ? 'device' : 'devices'}`
  const cases: Readonly<Record<string, Case>> = {
    launch: { title: `${what}, cuGraphLaunch`, unit: 'ns', count: 10, loops: 5 },
    queue: { title: 'the same, queued call by call', unit: 'ns', count: 10, loops: 5 },
  }
  const rows = await takeTurns(
    cases,
    [
      subjectIn(c, 'C', Object.keys(cases), (test, count) => `${test} ${count}`),
      subjectOf('shoal', { launch: () => exec.launch(stream), queue }, time),
    ],
    options.rounds,
    compiled,
  )
  c.close()
  for (const object of [exec, graph]) object.dispose()
  for (const { buffer, stream } of ranks) for (const object of [buffer, stream]) object.dispose()
  for (const module of modules) module.dispose()
  await Promise.all(communicators.map((communicator) => communicator.destroy()))
  console.log('Time of the host for a step (median of rounds, each the best of 5 loops), and the ratio to C\n')
  printRows(rows, ['C', 'shoal'])
  const [launched, queued] = rows
  const ratio = launched?.ratioToC['shoal'] ?? Number.NaN
  const share = (launched?.subjects['shoal']?.median ?? Number.NaN) / (queued?.subjects['shoal']?.median ?? Number.NaN)
  const bars: Bar[] = [
    atMost('captured step, launch, ratio to C', ratio, 1.02),
    atMost('captured step, launch, share of the time of queuing it call by call', share, 0.5),
  ]
  return { results: { ...aboutDevices(devices, options), kernelCount, floats, cases: rows }, bars }
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

/** One graph of all devices: the other streams come into the capture behind the first, and go back into it. */
function capture(ranks: readonly Rank[], queue: () => void): Graph {
  const [{ stream: first }] = ranks as [Rank]
  return Graph.capture(first, () => {
    const start = first.record()
    for (const { stream } of ranks.slice(1)) stream.waitEvent(start)
    queue()
    for (const { stream } of ranks.slice(1)) first.waitEvent(stream.record())
  })
}
