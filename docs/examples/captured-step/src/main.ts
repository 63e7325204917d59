import { Device, ShoalError } from '@shoal/driver'
import { Graph, type GraphExec } from '@shoal/driver/graph'
import { Communicator } from '@shoal/nccl'
import { disposeReplica, makeReplica, queueStep, type Replica } from './trainer.js'

const length = 1000
const steps = 200
const repeats = 10 // of the step in one graph
const rate = 0.1

process.exitCode = await main()

async function main(): Promise<number> {
  try {
    return await run(Device.all())
  } catch (error) {
    if (!(error instanceof ShoalError)) throw error
    console.error(`captured-step: ${error.message}`)
    return 2
  }
}

async function run(devices: readonly Device[]): Promise<number> {
  if (devices.length === 0) {
    console.error('captured-step: there is no device')
    return 2
  }
  const kind = devices[0]?.isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ' (GPU)'
  console.log(`${devices.length} × ${devices[0]?.name}${kind}, ${length} weights`)
  const communicators = await Communicator.initAll(devices)
  const targets = devices.map((_, rank) => Float32Array.from({ length }, (_, index) => Math.sin(index * (rank + 1))))
  const replicas = devices.map((device, rank) =>
    makeReplica(device, communicators[rank] as Communicator, targets[rank] as Float32Array),
  )
  try {
    // Connects the devices, which cannot be captured.
    queueStep(replicas, rate / devices.length)
    await synchronized(replicas)

    using graph = captureSteps(replicas)
    using exec = graph.instantiate()
    console.log(`${repeats} steps are a graph of ${graph.nodes.length} nodes and ${graph.edges.length} edges`)
    const byCalls = await hostTime(replicas, () => queueStep(replicas, rate / devices.length), steps)
    const byGraph = await hostTime(replicas, () => launch(exec, replicas), steps / repeats)
    console.log(
      `the host's part of a step: ${byCalls.toFixed(1)} µs by calls, ${(byGraph / repeats).toFixed(1)} µs by the graph`,
    )
    return await checked(replicas, targets, 1 + 2 * steps)
  } finally {
    for (const replica of replicas) disposeReplica(replica)
    for (const communicator of communicators) await communicator.destroy()
  }
}

/** Some steps on all devices as one graph: the other streams begin behind the first one, and end before it. */
function captureSteps(replicas: readonly Replica[]): Graph {
  const [{ stream: first }] = replicas as readonly [Replica]
  const others = replicas.slice(1).map(({ stream }) => stream)
  return Graph.capture(first, () => {
    const start = first.record()
    for (const stream of others) stream.waitEvent(start)
    for (let step = 0; step < repeats; step += 1) queueStep(replicas, rate / replicas.length)
    for (const stream of others) first.waitEvent(stream.record())
  })
}

function launch(exec: GraphExec, replicas: readonly Replica[]): void {
  exec.launch(replicas[0]?.stream)
}

/** Microseconds that one call keeps the host, on average; the devices' work is waited for afterwards. */
async function hostTime(replicas: readonly Replica[], call: () => void, times: number): Promise<number> {
  const started = performance.now()
  for (let time = 0; time < times; time += 1) call()
  const took = performance.now() - started
  await synchronized(replicas)
  return (took / times) * 1000
}

async function synchronized(replicas: readonly Replica[]): Promise<void> {
  await Promise.all(replicas.map(({ communicator, stream }) => communicator.synchronize(stream)))
}

/** Compares with the same steps in double precision: the weights go to the mean of all targets. */
async function checked(replicas: readonly Replica[], targets: readonly Float32Array[], done: number): Promise<number> {
  const left = (1 - rate) ** done
  let largest = 0
  for (const { weights } of replicas) {
    const found = await weights.toArray()
    for (const [index, weight] of found.entries()) {
      const mean = targets.reduce((sum, each) => sum + (each[index] as number), 0) / targets.length
      largest = Math.max(largest, Math.abs(weight - mean * (1 - left)))
    }
  }
  const isRight = largest < 1e-5
  console.log(
    `after ${done} steps the weights are ${isRight ? 'right' : 'WRONG'}: they differ by at most ${largest.toExponential(1)}`,
  )
  return isRight ? 0 : 1
}
