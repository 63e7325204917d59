/**
 * What the model knows of graphs: pieces of work with what they use and leave, in an order that keeps what collides
 * apart.
 */
import type { Graph, GraphExec, GraphNode, NodeDescription } from '@shoal/driver/graph'
import { DisposedError } from '@shoal/types'
import type { Block } from './memory.js'
import type { StreamModel, World } from './world.js'

/** What a piece of work needs at a launch, and whether that is still there. */
export type Need = { readonly disposed: boolean }

/** A piece of work of a graph. */
export interface Step {
  readonly told: string
  readonly uses: readonly { readonly block: Block; readonly write: boolean }[]
  readonly needs: readonly Need[]
  /** What it leaves, once it has run on the stream. */
  apply(stream: StreamModel): void
  /** Its node, where it was added by hand. */
  readonly node?: GraphNode
  /** A description of the same kind with other operands, and what comes of it. */
  readonly again?: (node: GraphNode) => Changed | undefined
  readonly canBeDisabled?: boolean
}

/** What a node is to do from now on. */
export interface Changed {
  readonly description: NodeDescription
  readonly step: Step
}

export interface GraphModel {
  readonly name: string
  readonly graph: Graph
  readonly device: number
  /** In an order in which they may run. */
  steps: Step[]
  /** All that any node of it was ever given. */
  readonly needs: Set<Need>
  /** Whether it has nodes of memory, also in a graph that was moved there: it has one executable graph at a time. */
  hasMemory: boolean
  /** Whether it is a part of another one, and no longer one by itself. */
  isMoved?: boolean
  /** Whether it was captured from calls of other libraries, such as NCCL. */
  readonly isOpaque: boolean
  /**
   * Whether it has conditional nodes: such a graph cannot be cloned, or be part of another, and has one executable
   * graph at a time.
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

/** Launches it; refused where something that it needs is gone. */
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
