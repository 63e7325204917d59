/** Graphs: built by hand, launched, changed, and disposed of while they run. */
import { copyNode, fillNode, Graph, type GraphExec, type GraphNode, type InstantiateOptions } from '@shoal/driver/graph'
import { DisposedError, StatusError } from '@shoal/types'
import {
  addExec,
  addGraph,
  type Changed,
  type ExecModel,
  type GraphModel,
  graphsOf,
  isAnyGone,
  launchExec,
  type Need,
  type Step,
} from '../graphModel.js'
import { arrays, bytesOf, type ModelType } from '../memory.js'
import { Mismatch, type Operation } from '../operation.js'
import type { World } from '../world.js'
import { brokenCapture, capture, mostGraphs, somePieces } from './graphCaptures.js'
import { needOf, someWork, stepOf } from './graphSteps.js'

/** Returns true if one of the two must run before the other. */
function collide(one: Step, other: Step): boolean {
  return one.uses.some(({ block, write }) => other.uses.some((use) => use.block === block && (use.write || write)))
}

const build: Operation = {
  name: 'make a graph by hand',
  weight: 8,
  run(world) {
    if (world.part(graphsOf).liveGraphs().length > mostGraphs) return undefined
    const device = world.random.integer(0, world.devices.length - 1)
    const graph = Graph.create(world.devices[device] as never)
    const steps: Step[] = []
    const nodes: GraphNode[] = []
    const inChain = world.chance(0.3)
    const add = (step: Step, adding: (dependencies: readonly GraphNode[]) => GraphNode): void => {
      const before = steps.flatMap((other, index) =>
        inChain || collide(other, step) ? [nodes[index] as GraphNode] : [],
      )
      const node = adding(inChain ? before.slice(-1) : before)
      steps.push({ ...step, node })
      nodes.push(node)
    }
    for (const piece of somePieces(world, device)) {
      const step = stepOf(piece)
      add(step, (dependencies) => graph.add(piece.describe(), { dependencies }))
      const [last] = nodes.slice(-1) as [GraphNode]
      steps[steps.length - 1] = stepOf(piece, last)
    }
    const told = steps.map((step) => step.told)
    const hasMemory = world.chance(0.15) && addMemory(world, graph, device, steps, nodes)
    const hasConditional = world.chance(0.15)
    if (hasConditional) told.push(addBranch(world, graph, device, steps, nodes))
    const model = addGraph(world, graph, device, steps, { hasMemory, hasConditional })
    const inner = world.pick(
      world
        .part(graphsOf)
        .liveGraphs()
        .filter(
          (other) => other !== model && other.device === device && (canBeCopied(other) || canBeMoved(world, other)),
        ),
    )
    if (!hasMemory && inner !== undefined && !isAnyGone(inner.needs) && world.chance(0.2)) {
      const move = !canBeCopied(inner) || world.chance(0.3)
      graph.addGraph(inner.graph, { move, dependencies: [...new Set(nodes)] })
      if (move) {
        world.refused(`instantiate() of ${inner.name}`, () => inner.graph.instantiate(), [TypeError])
        // The moved graph belongs to this graph now, so `dispose` has no effect.
        inner.graph.dispose()
        world.equal(`disposed of ${inner.name}`, inner.graph.disposed, false)
        inner.isMoved = true
        model.hasMemory = inner.hasMemory
        told.push('moved:')
      }
      // The steps of the child graph run one after the other. None of them has a node in this graph.
      for (const { again: _, node: __, ...step } of inner.steps) model.steps.push({ ...step, canBeDisabled: false })
      for (const need of inner.needs) model.needs.add(need)
      told.push(`all of ${inner.name}`)
    }
    world.equal(`nodes of ${model.name}`, graph.toJSON().nodes.length, graph.nodes.length)
    return `${model.name}: ${told.join(', ')}`
  },
}

/**
 * Adds memory that the graph allocates, fills, copies from and frees. Returns false if there is no memory to copy to.
 */
function addMemory(world: World, graph: Graph, device: number, steps: Step[], nodes: GraphNode[]): boolean {
  const target = world.pick(
    world.liveMemories().filter(({ root, dtype }) => root.device === device && arrays[dtype].BYTES_PER_ELEMENT < 8),
  )
  if (target === undefined) return false
  const { dtype, length } = target
  const { node: allocated, memory } = graph.allocate(dtype, length)
  const value = world.random.integer(0, 100)
  const filled = graph.add(fillNode(memory, value as never), { dependencies: [allocated] })
  const copied = graph.add(copyNode(target.buffer, memory), { dependencies: [filled, ...nodes] })
  graph.free(memory, { dependencies: [copied] })
  nodes.push(copied)
  steps.push({
    told: `${target.name} by way of memory of its own`,
    uses: [{ block: target.root.block, write: true }],
    needs: [needOf(target)],
    apply: () => target.root.block.write(target.offset, bytesOf(filledArray(dtype, length, value))),
  })
  return true
}

function filledArray(dtype: ModelType, length: number, value: number): ArrayBufferView {
  return new arrays[dtype](length).fill(value as never)
}

function canBeCopied({ hasMemory, isOpaque, hasConditional }: GraphModel): boolean {
  return !hasMemory && !isOpaque && !hasConditional
}

/** A graph with memory nodes has at most one executable graph, and cannot be moved while it has one. */
function canBeMoved(world: World, model: GraphModel): boolean {
  return !model.isOpaque && !model.hasConditional && !hasExec(world, model)
}

function hasExec(world: World, model: GraphModel): boolean {
  return world
    .part(graphsOf)
    .liveExecs()
    .some(({ source }) => source === model)
}

/** Adds a node that runs one of two graphs, or none. */
function addBranch(world: World, graph: Graph, device: number, steps: Step[], nodes: GraphNode[]): string {
  const type = world.one(['if', 'switch'] as const)
  const size = world.random.integer(1, 2)
  const value = world.random.integer(0, 2)
  const { node, bodies } = graph.addConditional({ type, size, defaultValue: value, dependencies: nodes })
  const taken = type === 'switch' ? value : value === 0 ? 1 : 0
  const told: string[] = []
  for (const [index, body] of bodies.entries()) {
    const piece = someWork(world, device)
    if (piece === undefined || piece.canBeDisabled === false) continue
    body.add(piece.describe())
    const { apply, ...rest } = stepOf(piece)
    steps.push({ ...rest, canBeDisabled: false, apply: (stream) => index === taken && apply(stream) })
    nodes.push(node)
    told.push(`${piece.told}${index === taken ? '' : ' (left out)'}`)
  }
  return `${type} ${value}: ${told.join(' or ')}`
}

/** Instantiates a graph. If it has nodes of several contexts, kernels cannot launch it, so only the host will. */
function instantiateWith(graph: Graph, options: InstantiateOptions): GraphExec {
  try {
    return graph.instantiate(options)
  } catch (error) {
    const isExpected = error instanceof StatusError && error.message.includes('nodes of several contexts')
    if (options.deviceLaunch !== true || !isExpected) throw error
    return graph.instantiate({ ...options, deviceLaunch: false })
  }
}

const instantiate: Operation = {
  name: 'instantiate a graph',
  weight: 8,
  run(world) {
    const graphs = world.part(graphsOf)
    const model = world.pick(graphs.liveGraphs())
    if (model === undefined || graphs.liveExecs().length > mostGraphs) return undefined
    const { graph, name } = model
    if (isAnyGone(model.needs)) {
      world.refused(`an executable graph of ${name}`, () => graph.instantiate(), [DisposedError])
      return `${name}, refused`
    }
    if ((model.hasMemory || model.hasConditional) && hasExec(world, model)) {
      world.refused(`another executable graph of ${name}`, () => graph.instantiate(), [StatusError])
      return `${name} a second time, refused`
    }
    const deviceLaunch = world.chance(0.2)
    const types = new Set(graph.nodes.map(({ type }) => type))
    for (const type of ['kernel', 'memcpy', 'memset'] as const) types.delete(type)
    const options = {
      useNodePriority: world.chance(0.2),
      autoFreeOnLaunch: !deviceLaunch && world.chance(0.2),
      deviceLaunch: deviceLaunch && graph.nodes.length > 0 && types.size === 0,
    }
    // The result for a child graph depends on the child's nodes.
    if (deviceLaunch && !options.deviceLaunch && !types.has('graph')) {
      world.refused(`${name} for kernels`, () => graph.instantiate({ deviceLaunch }), [StatusError])
    }
    const made = addExec(world, model, instantiateWith(graph, options))
    world.equal(`flags of ${made.name}`, made.exec.flags.autoFreeOnLaunch, options.autoFreeOnLaunch)
    if (!options.deviceLaunch) world.equal(`a flag of ${made.name}`, made.exec.flags.deviceLaunch, false)
    if (world.chance(0.2)) graph.dispose()
    return `${made.name} of ${name}${graph.disposed ? ', which was disposed of' : ''}`
  },
}

const launch: Operation = {
  name: 'launch a graph',
  weight: 16,
  async run(world) {
    const model = world.pick(world.part(graphsOf).liveExecs())
    if (model === undefined) return undefined
    const stream = world.one(world.liveStreams(model.source.device))
    if (world.chance(0.15)) model.exec.upload(stream.stream)
    if (world.chance(0.3)) await world.delay(stream, world.one([0.05, 0.2]))
    let told = await launchExec(world, model, stream)
    if (world.chance(0.2)) told = `${told}; ${await launchExec(world, model, stream)}`
    if (world.chance(0.15)) {
      // The executable graph ends when its work has ended.
      model.exec.dispose()
      told += ', disposed of at once'
    }
    if (world.chance(0.1) && stream.queue.kind !== 'legacy') {
      stream.stream.dispose()
      stream.disposed = true
      told += ', and its stream'
    }
    return told
  },
}

function memoryOfStep(world: World, model: ExecModel): Step | undefined {
  return world.pick(
    model.steps.map(({ step }) => step).filter(({ node, again }) => node !== undefined && again !== undefined),
  )
}

/** Returns true if a change of one step keeps conflicting steps ordered. */
function staysInOrder(steps: readonly Step[], old: Step, next: Step): boolean {
  const others = steps.filter((other) => other !== old)
  // The edges do not change, so the new operands may conflict only with steps that the old operands conflicted with.
  return others.every((other) => !collide(other, next) || collide(other, old))
}

const change: Operation = {
  name: 'change a node of an executable graph',
  weight: 6,
  run(world) {
    const model = world.pick(
      world
        .part(graphsOf)
        .liveExecs()
        .filter(({ source }) => source.isMoved !== true && !source.graph.disposed),
    )
    if (model === undefined) return undefined
    const step = memoryOfStep(world, model)
    if (step === undefined) return undefined
    const made = step.again?.(step.node as GraphNode)
    const node = step.node as GraphNode
    const index = model.steps.findIndex((one) => one.step === step)
    if (made === undefined) return undefined
    if (
      !staysInOrder(
        model.steps.map((one) => one.step),
        step,
        made.step,
      )
    )
      return undefined
    const told = `${made.step.told} in place of ${step.told}`
    if (world.chance(0.5) || isAnyGone(model.source.needs)) {
      model.exec.updateNode(node, made.description)
      addNeeds(model.needs, made.step)
      ;(model.steps[index] as { step: Step }).step = made.step
      return `${told} in ${model.name}`
    }
    return changeByGraph(model, node, made, told)
  },
}

function addNeeds(needs: Set<Need>, step: Step): void {
  for (const need of step.needs) needs.add(need)
}

/** Changes the node of the graph and updates the executable graph from it. */
function changeByGraph(
  model: ExecModel,
  node: GraphNode,
  { description, step }: Changed,
  told: string,
): string | undefined {
  const { source, exec } = model
  const at = source.steps.findIndex((one) => one.node === node)
  if (at < 0 || source.hasMemory) return undefined
  if (!staysInOrder(source.steps, source.steps[at] as Step, step)) return undefined
  node.update(description)
  source.steps[at] = step
  addNeeds(source.needs, step)
  const { result } = exec.update(source.graph)
  if (result !== 'success') throw new Mismatch(`update() of ${model.name} with ${source.name} ended with ${result}`)
  model.steps = source.steps.map((one, index) => ({ step: one, enabled: model.steps[index]?.enabled ?? true }))
  model.needs.clear()
  for (const need of source.needs) model.needs.add(need)
  return `${told} in ${source.name}, brought to ${model.name}`
}

const enable: Operation = {
  name: 'leave a node out',
  weight: 4,
  run(world) {
    const model = world.pick(
      world
        .part(graphsOf)
        .liveExecs()
        .filter(({ source }) => source.isMoved !== true && !source.graph.disposed),
    )
    if (model === undefined) return undefined
    const entry = world.pick(model.steps.filter(({ step }) => step.canBeDisabled === true && step.node !== undefined))
    if (entry === undefined) return undefined
    const node = entry.step.node as GraphNode
    entry.enabled = world.chance(0.5)
    model.exec.setEnabled(node, entry.enabled)
    world.equal(`isEnabled() of ${model.name}`, model.exec.isEnabled(node), entry.enabled)
    return `${entry.step.told} in ${model.name}: ${entry.enabled}`
  },
}

const clone: Operation = {
  name: 'clone a graph',
  weight: 2,
  run(world) {
    const graphs = world.part(graphsOf)
    const model = world.pick(graphs.liveGraphs().filter(canBeCopied))
    if (model === undefined || graphs.liveGraphs().length > mostGraphs) return undefined
    const graph = model.graph.clone()
    const steps = model.steps.map((step) =>
      step.node === undefined ? step : { ...step, node: graph.findInClone(step.node) },
    )
    const made = addGraph(world, graph, model.device, steps)
    for (const need of model.needs) made.needs.add(need)
    return `${made.name} of ${model.name}`
  },
}

const end: Operation = {
  name: 'dispose of a graph',
  weight: 5,
  async run(world) {
    const graphs = world.part(graphsOf)
    const model: GraphModel | ExecModel | undefined = world.pick([...graphs.liveGraphs(), ...graphs.liveExecs()])
    if (model === undefined) return undefined
    if ('exec' in model) {
      model.exec.dispose()
      if (world.chance(0.3)) model.exec.dispose()
      world.refused(`launch() of ${model.name}`, () => model.exec.launch(), [DisposedError])
      world.refused(`upload() of ${model.name}`, () => model.exec.upload(), [DisposedError])
      return model.name
    }
    const [step] = model.steps
    model.graph.dispose()
    world.refused(`instantiate() of ${model.name}`, () => model.graph.instantiate(), [DisposedError])
    if (step?.node !== undefined) world.refused(`a node of ${model.name}`, () => step.node?.handle, [DisposedError])
    return model.name
  },
}

export const graphs: readonly Operation[] = [
  capture,
  brokenCapture,
  build,
  instantiate,
  launch,
  change,
  enable,
  clone,
  end,
]
