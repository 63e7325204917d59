import { Device, DeviceBuffer, defineStruct, type Kernel, Module, prepareCopies } from '@shoal/driver'
import { emptyNode, Graph, type GraphExec, type GraphNode, kernelNode } from '@shoal/driver/graph'
import { copyCount, kernels, nodeCount } from './graphs.js'
import { bareCalls } from './graphsBareCalls.js'
import { isTrial, type Subject, subjectOf } from './turns.js'

const copyBytes = 4096
const burst = 100
/** Launches per burst. A graph of {@link nodeCount} kernels keeps the device busy for a long time. */
const graphBurst = 10

/** A struct of 64 bytes that a kernel takes by value. */
export const structOf64 = defineStruct('Block', {
  scale: 'f64',
  offset: ['i32', 4],
  shape: ['u64', 4],
  mode: 'u32',
  flags: 'u32',
})

interface Measured {
  /** Called before each loop, without being timed. */
  readonly arm?: () => void
  readonly loop: () => unknown
  /** The number of calls in one loop. */
  readonly calls: number
}

/** A graph of {@link nodeCount} kernels in a chain. */
export function buildGraph(device: Device, kernel: Kernel<readonly []>): Graph {
  const graph = Graph.create(device)
  const config = { grid: 1, block: 32 }
  let last: GraphNode | undefined
  for (let node = 0; node < nodeCount; node += 1) {
    last = graph.add(kernelNode(kernel, config), last === undefined ? {} : { dependencies: [last] })
  }
  return graph
}

function oneNode(device: Device): GraphExec {
  using graph = Graph.create(device)
  graph.add(emptyNode())
  return graph.instantiate()
}

/** The subjects for `startNodeSubjects`, for this number of rounds. */
export function makeSubjects([rounds = '']: readonly string[]): readonly Subject[] {
  const device = Device.get(0)
  const stream = device.createStream({ nonBlocking: true })
  const module = Module.loadSync(device, kernels)
  const [empty0, empty64] = [module.kernel('empty0', []), module.kernel('empty64', [structOf64])]
  const build = (): Graph => buildGraph(device, empty0)
  const graph = build()
  const exec = graph.instantiate()
  exec.upload(stream)
  let launched = oneNode(device)
  const launch = (): void => launched.launch(stream)
  // Warm up, as in a program that launches graphs often: V8 compiles the code after thousands of calls. Uses a small
  // graph, because a large one would keep the device busy too long.
  const warmUps = isTrial(Number(rounds)) ? 1 : 200
  for (let turn = 0; turn < warmUps; turn += 1) {
    for (let call = 0; call < burst; call += 1) launch()
    stream.synchronizeSync()
  }
  launched.dispose()
  launched = exec
  const [from, to] = [0, 1].map(() => DeviceBuffer.zeros(device, 'u8', copyCount * copyBytes)) as [
    DeviceBuffer<'u8'>,
    DeviceBuffer<'u8'>,
  ]
  const copies = prepareCopies(
    device,
    Array.from({ length: copyCount }, (_, index) => {
      const part = [index * copyBytes, (index + 1) * copyBytes] as const
      return { target: to.slice(...part), source: from.slice(...part) }
    }),
  )
  const config = { grid: 8, block: 32, stream }
  const clustered = empty0.with({ clusterDimension: 2 })
  const cooperative = empty0.with({ cooperative: true })
  const value = { scale: 1, offset: [1, 2, 3, 4], shape: [1n, 2n, 3n, 4n], mode: 5, flags: 6 }
  const bytes = structOf64.encode(value)
  const loops: Record<string, Measured> = {
    launch: { calls: graphBurst, loop: launch },
    build: { calls: 1, loop: () => build().dispose() },
    instantiate: { calls: 1, loop: () => graph.instantiate().dispose() },
    cluster: { calls: burst, loop: () => clustered.launch(config) },
    cooperative: { calls: burst, loop: () => cooperative.launch(config) },
    struct: { calls: burst, loop: () => empty64.launch(config, bytes) },
    object: { calls: burst, loop: () => empty64.launch(config, value) },
    copies: { calls: 1, loop: () => copies.launch({ stream }) },
  }
  const bare = bareCalls(stream, exec, empty0, empty64.handle, bytes)
  const bareLoops = Object.fromEntries(
    Object.entries(bare).map(([test, { arm, call }]): [string, Measured] => [
      test,
      { calls: loops[test]?.calls ?? burst, arm, loop: call },
    ]),
  )
  const time = ({ arm, loop, calls }: Measured, count: number): number =>
    device.primaryContext.run(() => {
      let nanoseconds = 0n
      for (let turn = 0; turn < count; turn += 1) {
        arm?.()
        const start = process.hrtime.bigint()
        for (let call = 0; call < calls; call += 1) loop()
        nanoseconds += process.hrtime.bigint() - start
        stream.synchronizeSync()
      }
      return Number(nanoseconds) / (count * calls)
    })
  return [subjectOf('driver', loops, time), subjectOf('bare call', bareLoops, time)]
}
