import { type Device, DeviceBuffer, defineStruct, type Kernel, Module, prepareCopies, type Stream } from '@shoal/driver'
import { Graph, type GraphNode, kernelNode } from '@shoal/driver/graph'
import { atMost, type Bar } from './bars.js'
import { compileWithCuda, writeTemporary } from './compile.js'
import { aboutDevices, devicesFor } from './devices.js'
import type { Outcome, RunOptions } from './options.js'
import { SubjectProcess } from './subjectProcess.js'
import { type Case, compiled, printRows, subjectIn, subjectOf, takeTurns } from './turns.js'

export const nodeCount = 1000
const copyCount = 1000
const copyBytes = 4096
const burst = 100
/** A graph of so many kernels keeps the device busy for long. */
const graphBurst = 10

const kernels = `.version 6.4
.target sm_52
.address_size 64
.visible .entry empty0() { ret; }
.visible .entry empty64(.param .align 8 .b8 block[64]) { ret; }
`

/** 64 bytes, as a kernel takes them by value. */
export const structOf64 = defineStruct('Block', {
  scale: 'f64',
  offset: ['i32', 4],
  shape: ['u64', 4],
  mode: 'u32',
  flags: 'u32',
})

const titles: Readonly<Record<string, string>> = {
  launch: `cuGraphLaunch of ${nodeCount} kernels`,
  build: `a graph of ${nodeCount} kernels, built and destroyed`,
  instantiate: `cuGraphInstantiate of ${nodeCount} kernels, and its end`,
  cluster: 'cuLaunchKernelEx, clusters of 2',
  cooperative: 'cuLaunchKernelEx, cooperative',
  struct: 'cuLaunchKernel, a struct of 64 bytes',
  object: 'the same, encoded from an object each time',
  copies: `cuMemcpyBatchAsync, ${copyCount} × 4 KiB`,
}
/** How much of C's time each may take. */
const limits: Readonly<Record<string, number>> = {
  launch: 1.01,
  build: 2,
  cluster: 1.05,
  cooperative: 1.05,
  struct: 1.05,
  copies: 1.05,
}

type Loop = () => void
interface Measured {
  readonly loop: Loop
  /** Calls in one loop. */
  readonly calls: number
}

/** Graphs, launches with attributes and structs, and many copies at once: in C, and through the driver package. */
export async function benchGraphs(options: RunOptions): Promise<Outcome> {
  const [device] = devicesFor(options) as [Device]
  const program = compileWithCuda('graphs.c')
  const ptxFile = writeTemporary('graphs.ptx', kernels)
  const [c, readyLine] = await SubjectProcess.start('graphs.c', program, [
    ptxFile,
    String(nodeCount),
    String(copyCount),
  ])
  const { loops, stream, dispose } = makeLoops(device)
  const time = ({ loop, calls }: Measured, count: number): number =>
    device.primaryContext.run(() => {
      let nanoseconds = 0n
      for (let turn = 0; turn < count; turn += 1) {
        const start = process.hrtime.bigint()
        for (let call = 0; call < calls; call += 1) loop()
        nanoseconds += process.hrtime.bigint() - start
        stream.synchronizeSync()
      }
      return Number(nanoseconds) / (count * calls)
    })
  const rows = await takeTurns(
    Object.fromEntries(
      Object.entries(titles).map(([test, title]): [string, Case] => [test, { title, unit: 'ns', count: 10, loops: 5 }]),
    ),
    [
      // In C a struct is bytes anyway.
      subjectIn(c, 'C', [...readyLine.split(' ').slice(1), 'object'], (test, count) =>
        [test === 'object' ? 'struct' : test, count].join(' '),
      ),
      subjectOf('driver', loops, time),
    ],
    options.rounds,
    compiled,
  )
  c.close()
  dispose()
  console.log(
    'Graphs, launches with attributes, many copies (median of rounds, each the best of 5 loops), and the ratio to C\n',
  )
  printRows(rows, ['C', 'driver'])
  const bars = rows.flatMap((row): Bar[] => {
    const [limit, ratio] = [limits[row.case], row.ratioToC['driver']]
    return limit === undefined || ratio === undefined ? [] : [atMost(`${row.title}, ratio to C`, ratio, limit)]
  })
  return { results: { ...aboutDevices([device], options), nodeCount, copyCount, cases: rows }, bars }
}

/** A graph of {@link nodeCount} kernels, one behind the other. */
export function buildGraph(device: Device, kernel: Kernel<readonly []>): Graph {
  const graph = Graph.create(device)
  const config = { grid: 1, block: 32 }
  let last: GraphNode | undefined
  for (let node = 0; node < nodeCount; node += 1) {
    last = graph.add(kernelNode(kernel, config), last === undefined ? {} : { dependencies: [last] })
  }
  return graph
}

function makeLoops(device: Device): { loops: Record<string, Measured>; stream: Stream; dispose: () => void } {
  const stream = device.createStream({ nonBlocking: true })
  const module = Module.loadSync(device, kernels)
  const [empty0, empty64] = [module.kernel('empty0', []), module.kernel('empty64', [structOf64])]
  const build = (): Graph => buildGraph(device, empty0)
  const graph = build()
  const exec = graph.instantiate()
  exec.upload(stream)
  stream.synchronizeSync()
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
    launch: { calls: graphBurst, loop: () => exec.launch(stream) },
    build: { calls: 1, loop: () => build().dispose() },
    instantiate: { calls: 1, loop: () => graph.instantiate().dispose() },
    cluster: { calls: burst, loop: () => clustered.launch(config) },
    cooperative: { calls: burst, loop: () => cooperative.launch(config) },
    struct: { calls: burst, loop: () => empty64.launch(config, bytes) },
    object: { calls: burst, loop: () => empty64.launch(config, value) },
    copies: { calls: 1, loop: () => copies.launch({ stream }) },
  }
  const dispose = (): void => {
    for (const each of [exec, graph, from, to, module, stream]) each.dispose()
  }
  return { loops, stream, dispose }
}
