/** Collectives of NCCL that run many times: prepared, or captured in a graph. */
import { Graph } from '@shoal/driver/graph'
import {
  CommunicatorAbortedError,
  group,
  groupOffThread,
  type PreparedCollective,
  type PreparedGroup,
  prepareGroup,
} from '@shoal/nccl'
import { DisposedError } from '@shoal/types'
import { addGraph, graphsOf, type Step } from '../graphModel.js'
import type { Operation } from '../operation.js'
import type { StreamModel } from '../world.js'
import { someCapturable } from './graphCaptures.js'
import { needOf } from './graphSteps.js'
import { type Collective, callAll, done, liveRanks, orderAll, plan, type Ranks, usesOf } from './nccl.js'

interface PreparedModel {
  readonly name: string
  readonly ranks: Ranks
  readonly collective: Collective
  readonly prepared: readonly PreparedCollective[]
  readonly group: PreparedGroup
}

const allPrepared = (): PreparedModel[] => []

const prepare: Operation = {
  name: 'prepare a collective',
  weight: 4,
  async run(world) {
    const ranks = world.pick(liveRanks(world))
    if (ranks === undefined || world.part(allPrepared).length > 12) return undefined
    const collective = await plan(world, ranks)
    const prepared = collective.parts.map((part) => collective.prepare(part))
    if (!prepared.every((one) => one !== undefined)) return undefined
    const name = world.name('prepared')
    const model = { name, ranks, collective, prepared, group: prepareGroup(prepared) }
    world.part(allPrepared).push(model)
    return `${name}: ${collective.told}`
  },
}

const launch: Operation = {
  name: 'make a prepared collective',
  weight: 10,
  async run(world) {
    const model = world.pick(world.part(allPrepared))
    if (model === undefined) return undefined
    const { collective, prepared, ranks, name } = model
    const { parts } = collective
    const all = (): void => {
      for (const one of prepared) one.launch()
    }
    const way = world.random.integer(0, 2)
    const isGone = parts.some(({ send, recv, stream }) => send.root.disposed || recv.root.disposed || stream.disposed)
    if (isGone || ranks.ended) {
      const refusals = [DisposedError, CommunicatorAbortedError]
      if (way === 0) world.refused(name, () => model.group.launch(), refusals)
      else if (way === 1) world.refused(name, () => group(all), refusals)
      else await world.rejects(name, groupOffThread(all), refusals)
      return `${name}, refused`
    }
    await orderAll(world, parts)
    if (way === 0) model.group.launch()
    else if (way === 1) group(all)
    else await groupOffThread(all)
    done(world, collective)
    return `${name}, way ${way}`
  },
}

const capture: Operation = {
  name: 'capture a collective',
  weight: 4,
  async run(world) {
    const ranks = world.pick(liveRanks(world))
    if (ranks === undefined || world.part(graphsOf).liveGraphs().length > 8) return undefined
    if (world.sharesDevices) return undefined
    const collective = await plan(world, ranks, (device) => someCapturable(world, device) as StreamModel)
    const { parts, told } = collective
    // This first call connects the ranks, which a capture cannot do.
    group(() => callAll(collective))
    done(world, collective)
    const [first, ...others] = parts.map(({ stream }) => stream) as [StreamModel, ...StreamModel[]]
    const graph = Graph.capture(first.stream, () => {
      for (const { stream } of others) stream.waitEvent(first.stream.record())
      group(() => callAll(collective))
      for (const { stream } of others) first.stream.waitEvent(stream.record())
    })
    const step: Step = {
      told,
      uses: parts.flatMap(usesOf),
      needs: parts.flatMap(({ send, recv, communicator }) => [needOf(send), needOf(recv), communicator]),
      apply: () => applyResults(collective),
    }
    const model = addGraph(world, graph, first.device, [step], { isOpaque: true })
    return `${model.name}: ${told}`
  },
}

function applyResults(collective: Collective): void {
  const results = collective.results()
  for (const [rank, { recv }] of collective.parts.entries()) {
    const result = results[rank]
    if (result !== undefined) recv.root.block.copy(recv.offset, result)
  }
}

export const ncclRepeated: readonly Operation[] = [prepare, launch, capture]
