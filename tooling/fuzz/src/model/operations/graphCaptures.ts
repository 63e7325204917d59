/** Captures that create a graph, and captures that must fail. */
import { DeviceBuffer, type Stream } from '@shoal/driver'
import { Graph } from '@shoal/driver/graph'
import { StatusError } from '@shoal/types'
import { addGraph, graphsOf, type Need } from '../graphModel.js'
import type { Root } from '../memory.js'
import type { Operation } from '../operation.js'
import type { StreamModel, World } from '../world.js'
import { someWork, stepOf, type Work, wayOfOwnMemory } from './graphSteps.js'
import { addStream } from './making.js'

/** Maximum number of live graphs. */
export const mostGraphs = 6

/**
 * Returns the streams that can be captured. During a capture, no thread may wait for the device. During a capture of a
 * blocking stream, no work may use the legacy default stream.
 */
function capturable(world: World, device: number): StreamModel[] {
  if (world.sharesDevices) return []
  return world
    .liveStreams(device)
    .filter(({ queue }) => queue.kind === 'nonBlocking' || (queue.kind === 'blocking' && !world.sharesStreams))
}

/** Returns a stream that can be captured, and creates it if necessary. Returns undefined if no capture is possible. */
export function someCapturable(world: World, device: number): StreamModel | undefined {
  if (world.sharesDevices) return undefined
  return world.pick(capturable(world, device)) ?? addStream(world, device, false, true)
}

export function somePieces(world: World, device: number, isMeant: (work: Work) => boolean = () => true): Work[] {
  const count = world.random.integer(1, 6)
  return Array.from({ length: count }, () => someWork(world, device))
    .filter((work) => work !== undefined)
    .filter(isMeant)
}

/** Queues work on one or two streams so that its order is kept. */
function queueAll(world: World, pieces: readonly Work[], first: StreamModel, second: StreamModel | undefined): void {
  if (second !== undefined) second.stream.waitEvent(first.stream.record())
  let current = first
  for (const piece of pieces) {
    const next = second !== undefined && world.chance(0.5) ? second : first
    if (next !== current) next.stream.waitEvent(current.stream.record())
    current = next
    piece.queue(current)
  }
  if (second !== undefined) first.stream.waitEvent(second.stream.record())
}

export const capture: Operation = {
  name: 'capture a graph',
  weight: 8,
  async run(world) {
    if (world.part(graphsOf).liveGraphs().length > mostGraphs) return undefined
    const first = someCapturable(world, world.random.integer(0, world.devices.length - 1))
    if (first === undefined) return undefined
    const { device } = first
    const second = world.chance(0.3)
      ? world.pick(capturable(world, device).filter((other) => other !== first))
      : undefined
    const pieces = somePieces(world, device, ({ canBeCaptured = true }) => canBeCaptured)
    const own = world.chance(0.2) ? wayOfOwnMemory(world, device) : undefined
    if (own !== undefined) pieces.push(own)
    const victim = world.chance(0.2) ? await someVictim(world, pieces) : undefined
    const options = { mode: world.one(['thread-local', 'relaxed', undefined] as const) }
    const gone = world.chance(0.1) && first.queue.kind !== 'legacy'
    const fn = (stream: Stream): void => {
      world.equal('the stream of a capture', stream, first.stream)
      queueAll(world, pieces, first, second)
      if (gone) first.stream.dispose()
      if (victim !== undefined) (victim.object as DeviceBuffer).dispose()
    }
    const told = `${pieces.map((piece) => piece.told).join(', ')} on ${first.name}${second === undefined ? '' : ` and ${second.name}`}`
    const graph = world.chance(0.7)
      ? Graph.capture(first.stream, fn, options)
      : Graph.create(world.devices[device] as never).capture(first.stream, fn, options)
    if (gone) first.disposed = true
    const model = addGraph(
      world,
      graph,
      device,
      pieces.map((piece) => stepOf(piece)),
      { hasMemory: own !== undefined },
    )
    if (victim !== undefined) victim.disposed = true
    return `${model.name}: ${told}${gone ? ', which was disposed of' : ''}${victim === undefined ? '' : `; ${victim.name} is gone`}`
  },
}

/** Returns memory that the captured work does not use, to be disposed of during the capture. */
async function someVictim(world: World, pieces: readonly Work[]): Promise<Root | undefined> {
  const needs = new Set(pieces.flatMap((piece) => [...piece.needs]))
  const root = world.pick(
    world.roots.filter((one) => !one.disposed && /^(memory|managed)/.test(one.name) && !needs.has(one.object as Need)),
  )
  if (root !== undefined) await world.order(undefined, [{ block: root.block, write: true }])
  return root
}

class Deliberate extends Error {}

export const brokenCapture: Operation = {
  name: 'break a capture',
  weight: 3,
  async run(world) {
    const first = someCapturable(world, world.random.integer(0, world.devices.length - 1))
    if (first === undefined) return undefined
    const { device, stream } = first
    const pieces = somePieces(world, device, ({ canBeCaptured = true }) => canBeCaptured)
    const broken = (by: () => unknown) => (): unknown => {
      queueAll(world, pieces, first, undefined)
      return by()
    }
    const make = (by: () => unknown): unknown => Graph.capture(stream, broken(by) as never)
    const way = world.random.integer(0, 6)
    const memory = world.pick(world.liveMemories().filter(({ root }) => root.device === device))
    if (way === 0)
      world.refused(
        'a capture that throws',
        () =>
          make(() => {
            throw new Deliberate()
          }),
        [Deliberate],
      )
    if (way === 1) world.refused('an asynchronous capture', () => make(async () => {}), [TypeError])
    if (way === 2) world.refused('a wait in a capture', () => make(() => stream.synchronizeSync()), [StatusError])
    if (way === 3) world.refused('a query in a capture', () => make(() => stream.query()), [StatusError])
    if (way === 4) {
      const allocate = (): unknown => DeviceBuffer.allocate(world.devices[device] as never, 'u8', 64).dispose()
      world.refused('an allocation in a capture', () => make(allocate), [StatusError])
    }
    if (way === 5 && memory !== undefined) {
      // The wait must come before the capture, because work that waits for its turn is not captured.
      await world.order(undefined, [{ block: memory.root.block, write: true }])
      const blocking = (): unknown => memory.buffer.toArraySync({ stream })
      world.refused('a blocking copy in a capture', () => make(blocking), [StatusError])
    }
    if (way === 6) {
      const inner = (): unknown => Graph.capture(stream, () => {})
      world.refused('a capture in a capture', () => make(inner), [StatusError])
    }
    return `${first.name}, way ${way}`
  },
}
