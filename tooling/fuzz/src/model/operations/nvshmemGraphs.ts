/** Operations of NVSHMEM on streams, captured in a graph. */
import { Graph } from '@shoal/driver/graph'
import { addGraph, graphsOf, type Step } from '../graphModel.js'
import type { Memory } from '../memory.js'
import type { Operation } from '../operation.js'
import { shmemOf } from '../shmem.js'
import { someCapturable } from './graphCaptures.js'
import { needOf } from './graphSteps.js'
import { memoryOf } from './making.js'

const capture: Operation = {
  name: 'capture operations of NVSHMEM',
  weight: 5,
  async run(world) {
    const shmem = shmemOf(world)
    const { session } = shmem
    // With several PEs, each PE would have to know how often the others launch the graph.
    if (shmem.peCount > 1 || world.part(graphsOf).liveGraphs().length > 8) return undefined
    const stream = someCapturable(world, session.deviceOrdinal)
    const symmetric = world.pick(shmem.live())
    if (stream === undefined || symmetric?.memory === undefined) return undefined
    const there: Memory = symmetric.memory
    const local = memoryOf(world, stream.device, there.dtype, there.length, [there])
    const steps: Step[] = []
    const queue: (() => void)[] = []
    for (let count = world.random.integer(1, 3); count > 0; count -= 1) {
      const isPut = world.chance(0.5)
      const [target, source] = isPut ? [there, local] : [local, there]
      const options = { pe: 0, stream: stream.stream }
      const call = (): Promise<void> =>
        isPut
          ? session.putOnStream(symmetric.buffer, local.buffer, options)
          : session.getOnStream(local.buffer, symmetric.buffer, options)
      queue.push(() => world.later('a captured call', call(), () => {}))
      steps.push({
        told: `${isPut ? 'put' : 'get'} ${source.name} to ${target.name}`,
        uses: [
          { block: target.root.block, write: true },
          { block: source.root.block, write: false },
        ],
        needs: [needOf(there), needOf(local)],
        apply: () =>
          target.root.block.copy(target.offset, source.root.block.expected(source.offset, source.byteLength)),
      })
    }
    if (world.chance(0.3)) queue.push(() => void session.quietOnStream({ stream: stream.stream }))
    // If calls were still running, the captured calls would wait for their turn, which comes after the capture.
    await shmem.idle()
    const graph = Graph.capture(stream.stream, () => {
      for (const call of queue) call()
    })
    const model = addGraph(world, graph, stream.device, steps, { isOpaque: true })
    return `${model.name}: ${steps.map(({ told }) => told).join(', ')} on ${stream.name}`
  },
}

export const nvshmemGraphs: readonly Operation[] = [capture]
