import { type Loop, timeOf } from '@shoal/cli/bench'
import { driver } from '@shoal/cuda-sys/driver'
import { Device, DeviceBuffer, Module } from '@shoal/driver'
import { Graph } from '@shoal/driver/graph'
import { atMost, type Bar } from './bars.js'
import { compile } from './compile.js'
import { nodeCount } from './graphs.js'
import { buildGraph, structOf64 } from './graphsSubjects.js'
import { loopInC } from './loopInC.js'
import type { Outcome, RunOptions } from './options.js'
import { type Case, compiled, printRows, subjectOf, takeTurns } from './turns.js'

const callsPerLoop = 50_000
const loopsPerRound = 5
/** The maximum time between a method and its driver function, in nanoseconds. */
const mostAbove = 80
const barred: readonly string[] = [
  'query',
  'record',
  'wait',
  'fill',
  'fill4',
  'fill2',
  'pool',
  'cached',
  'prepared',
  'graph',
]
/** The same limit for a node of a graph that is built by hand. */
const mostAboveNode = 230

const titles = {
  query: 'stream.query()',
  record: 'stream.record(event)',
  wait: 'stream.waitEvent(event)',
  fill: 'buffer.fill(0), 1 KiB',
  fill4: 'buffer.fill(1.5), f32',
  fill2: 'the same, f16',
  copy: 'buffer.copyFrom(other), 1 KiB',
  up: 'buffer.copyFromSync(array), 1 KiB',
  down: 'buffer.copyToSync(array), 1 KiB',
  pool: 'allocateOn and dispose, 4 KiB',
  cached: 'the same of a CachingPool',
  launch: 'kernel.launch, 4 arguments',
  launch0: 'kernel.launch without arguments',
  cluster: 'the same with a cluster attribute',
  struct: 'kernel.launch, a struct of 64 bytes',
  prepared: 'prepared launch',
  graph: 'graph.launch()',
  build: `a graph of ${nodeCount} kernels, built and destroyed`,
} as const
type Test = keyof typeof titles

/** The loop in C that makes the same calls. */
const inC: Readonly<Record<Test, string>> = {
  ...(Object.fromEntries(Object.keys(titles).map((name) => [name, name])) as Record<Test, string>),
  cached: 'pool',
  prepared: 'launch',
  struct: 'launch',
}
/** The number of driver calls in one iteration of a loop. */
const callsOf: Partial<Record<Test, number>> = { up: 2, down: 2, pool: 2, build: nodeCount }

/**
 * Methods of the driver package on a driver that does nothing: measures the time between the method and the function.
 */
export async function benchShortCalls({ rounds }: RunOptions): Promise<Outcome> {
  delete process.env['SHOAL_DEVICE']
  driver.setPath(compile('noop.c', ['-shared', '-fPIC', '-ldl']))
  const time = (loop: Loop, count: number): number => timeOf(count, 0, loop) * 1000
  const { loops, dispose } = driverLoops(Device.get(0))
  const subjects = [subjectOf('C', cLoops(), (loop, count) => loop(count)), subjectOf('driver', loops, time)]
  const cases = Object.entries(titles).map(([test, title]): [string, Case] => [
    test,
    { title, unit: 'ns', count: test === 'build' ? callsPerLoop / nodeCount : callsPerLoop, loops: loopsPerRound },
  ])
  const rows = await takeTurns(Object.fromEntries(cases), subjects, rounds, compiled)
  dispose()
  console.log('On a driver that does nothing (median of rounds, each the best of its loops), and the ratio to C\n')
  printRows(rows, ['C', 'driver'])
  const bars = rows.flatMap(({ case: test, title, subjects: { C, driver } }): Bar[] => {
    const above = (driver?.median ?? Number.NaN) - (C?.median ?? Number.NaN)
    const each = above / (callsOf[test as Test] ?? 1)
    if (test === 'build') return [atMost(`${title}, each node above C`, each, mostAboveNode, ' ns')]
    return barred.includes(test) ? [atMost(`${title}, each call above C`, each, mostAbove, ' ns')] : []
  })
  return { results: rows, bars }
}

function driverLoops(device: Device): { loops: Readonly<Record<Test, Loop>>; dispose: () => void } {
  const { primaryContext } = device
  // As in the C loops.
  primaryContext.setCurrent()
  const stream = device.createStream({ nonBlocking: true })
  const event = device.createEvent()
  const options = { stream }
  const [from, to] = [DeviceBuffer.allocate(device, 'f32', 256), DeviceBuffer.allocate(device, 'f32', 256)]
  const half = DeviceBuffer.allocate(device, 'f16', 256)
  const array = new Float32Array(256)
  const pool = device.createCachingPool()
  const module = Module.loadSync(device, '.version 8.0')
  const kernel = module.kernel('empty4', ['f32', 'ptr', 'ptr', 'i32'])
  const config = { grid: 1, block: 32, stream }
  const plan = kernel.prepare(config, 2, from, to, 256)
  const empty0 = module.kernel('empty0', [])
  const clustered = empty0.with({ clusterDimension: 2 })
  const empty64 = module.kernel('empty64', [structOf64])
  const bytes = new Uint8Array(structOf64.bytes)
  const graph = Graph.create(device)
  const exec = graph.instantiate()
  const calls: Record<Test, () => unknown> = {
    query: () => stream.query(),
    record: () => stream.record(event),
    wait: () => stream.waitEvent(event),
    fill: () => to.fill(0, options),
    fill4: () => to.fill(1.5, options),
    fill2: () => half.fill(1.5, options),
    copy: () => to.copyFrom(from, options),
    up: () => to.copyFromSync(array, options),
    down: () => to.copyToSync(array, options),
    pool: () => DeviceBuffer.allocateOn(stream, 'u8', 4096).dispose(),
    cached: () => pool.allocate(stream, 'u8', 4096).dispose(),
    launch: () => kernel.launch(config, 2, from, to, 256),
    launch0: () => empty0.launch(config),
    cluster: () => clustered.launch(config),
    struct: () => empty64.launch(config, bytes),
    prepared: () => plan.launch(),
    graph: () => exec.launch(stream),
    build: () => buildGraph(device, empty0).dispose(),
  }
  const repeated = (call: () => unknown): Loop =>
    // Each call has its own loop, so that V8 inlines it.
    new Function('call', 'return (count) => { for (let i = 0; i < count; i += 1) call() }')(call)
  const loops = Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, repeated(call)]))
  const dispose = (): void => {
    for (const object of [exec, graph, pool, from, to, half, event, stream, module]) object.dispose()
  }
  return { loops: loops as Record<Test, Loop>, dispose }
}

/** Each returns the nanoseconds per iteration. */
function cLoops(): Readonly<Record<Test, (count: number) => number>> {
  return Object.fromEntries(
    Object.entries(inC).map(([test, name]) => [test, loopInC(driver, `loop_${name}`)]),
  ) as ReturnType<typeof cLoops>
}
