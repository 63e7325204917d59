/**
 * The model of graphs: the work of each graph with the memory that it uses and changes, in an order that keeps
 * conflicting work apart.
 */
import type { Graph, GraphExec, GraphNode, NodeDescription } from '@shoal/driver/graph'
import { DisposedError } from '@shoal/types'
import type { Block } from './memory.js'
import type { StreamModel, World } from './world.js'

/** An object that work needs at a launch. */
export type Need = { readonly disposed: boolean }

/** One piece of work of a graph. */
export interface Step {
  readonly told: string
  readonly uses: readonly { readonly block: Block; readonly write: boolean }[]
  readonly needs: readonly Need[]
  /** Applies the result of the work to the model, as if it had run on the stream. */
  apply(stream: StreamModel): void
  /** The node, if the work was added by hand. */
  readonly node?: GraphNode
  /** Returns a description of the same kind with other operands, and its model. */
  readonly again?: (node: GraphNode) => Changed | undefined
  readonly canBeDisabled?: boolean
}

/** New content of a node. */
export interface Changed {
  readonly description: NodeDescription
  readonly step: Step
}

export interface GraphModel {
  readonly name: string
  readonly graph: Graph
  readonly device: number
  /** Work in an order in which it may run. */
  steps: Step[]
  /** All objects that any node of the graph ever used. */
  readonly needs: Set<Need>
  /**
   * True if the graph has memory nodes, also in a child graph that was moved into it. Such a graph has at most one
   * executable graph at a time.
   */
  hasMemory: boolean
  /** True if the graph was moved into another graph. It can no longer be used alone. */
  isMoved?: boolean
  /** True if the graph was captured from calls of other libraries, such as NCCL. */
  readonly isOpaque: boolean
  /**
   * True if the graph has conditional nodes. Such a graph cannot be cloned or become part of another graph, and has at
   * most one executable graph at a time.
   */
  readonly hasConditional: boolean
}

export interface ExecModel {
  readonly name: string
  readonly exec: GraphExec
  readonly source: GraphModel
  steps: { step: Step; enabled: boolean }[]
  readonly needs: Set<Need>
}

export class Graphs {
  readonly graphs: GraphModel[] = []
  readonly execs: ExecModel[] = []

  liveGraphs(): GraphModel[] {
    return this.graphs.filter(({ graph, isMoved }) => isMoved !== true && !graph.disposed)
  }

  liveExecs(): ExecModel[] {
    return this.execs.filter(({ exec }) => !exec.disposed)
  }
}

export const graphsOf = (): Graphs => new Graphs()

export function addGraph(
  world: World,
  graph: Graph,
  device: number,
  steps: readonly Step[],
  kind: Partial<Pick<GraphModel, 'hasMemory' | 'isOpaque' | 'hasConditional'>> = {},
): GraphModel {
  const needs = new Set(steps.flatMap((step) => [...step.needs]))
  const kinds = { hasMemory: false, isOpaque: false, hasConditional: false, ...kind }
  const model = { name: world.name('graph'), graph, device, steps: [...steps], needs, ...kinds }
  world.part(graphsOf).graphs.push(model)
  world.cleanups.push(() => graph.dispose())
  return model
}

export function addExec(world: World, source: GraphModel, exec: GraphExec): ExecModel {
  const steps = source.steps.map((step) => ({ step, enabled: true }))
  const model = { name: world.name('exec'), exec, source, steps, needs: new Set(source.needs) }
  world.part(graphsOf).execs.push(model)
  world.cleanups.push(() => exec.dispose())
  return model
}

export function isAnyGone(needs: ReadonlySet<Need>): boolean {
  return [...needs].some(({ disposed }) => disposed)
}

/** Launches an executable graph. If an object that it needs is disposed, the launch must be refused. */
export async function launchExec(
  world: World,
  { exec, steps, needs, name }: ExecModel,
  stream: StreamModel,
): Promise<string> {
  const told = `${name} on ${stream.name}`
  if (isAnyGone(needs)) {
    world.refused(told, () => exec.launch(stream.stream), [DisposedError])
    return `${told}, refused`
  }
  const uses = steps.flatMap(({ step }) => [...step.uses])
  await world.order(stream.queue, uses)
  exec.launch(stream.stream)
  world.use(stream.queue, uses)
  for (const { step, enabled } of steps) if (enabled) step.apply(stream)
  return told
}
