import { type CUgraph, CUgraphNodeParams, cuGraphConditionalHandleCreate } from '@shoal/cuda-sys/driver'
import { readMemory } from '@shoal/ffi'
import { type OptionKeys, requireInteger, requireKeyOf, requireOptions } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { scratch } from '../../core/native.js'
import type { NodeOptions } from './edges.js'
import type { Graph } from './graph.js'
import type { GraphNode } from './graphNode.js'
import { codeOfType } from './nodeTypes.js'

/** Options of a conditional node. */
export interface ConditionalOptions extends NodeOptions {
  /**
   * `if`: runs the first graph if the value is not 0, else the second graph, if it exists. `while`: repeats the graph
   * while the value is not 0. `switch`: runs the graph with this index, if it exists.
   */
  readonly type: 'if' | 'while' | 'switch'
  /** Number of graphs. Default: 1. */
  readonly size?: number | undefined
  /** Value at the start of each launch. Default: the value of the previous launch, initially 0. */
  readonly defaultValue?: number | undefined
}

/** A conditional node with its handle and graphs. */
export interface ConditionalNode {
  /** The node that runs the graphs. */
  readonly node: GraphNode
  /** The `CUgraphConditionalHandle`: a kernel argument of type `u64`, for `cudaGraphSetConditional` in the kernel. */
  readonly handle: bigint
  /** The graphs of the node. Add nodes to them, or capture into them. */
  readonly bodies: readonly Graph[]
}

const conditionalKeys: OptionKeys<ConditionalOptions> = {
  dependencies: true,
  type: true,
  size: true,
  defaultValue: true,
}
const conditionalTypes = { if: 0, while: 1, switch: 2 } as const
const mostBodies = 1024
const assignDefault = 1

interface CheckedConditional extends Pick<ConditionalOptions, 'dependencies'> {
  readonly type: 0 | 1 | 2
  readonly size: number
  readonly value: number
  readonly flags: number
}

/** Checks the options. @throws TypeError, RangeError */
export function checkConditional(options: ConditionalOptions, api: string): CheckedConditional {
  requireOptions(options, api, conditionalKeys)
  const type = requireKeyOf(options.type, api, 'type', conditionalTypes)
  const most = type === conditionalTypes.while ? 1 : type === conditionalTypes.if ? 2 : mostBodies
  const size = options.size === undefined ? 1 : requireInteger(options.size, api, 'size', 1, most)
  const { defaultValue } = options
  const value = defaultValue === undefined ? 0 : requireInteger(defaultValue, api, 'defaultValue', 0, 2 ** 32 - 1)
  return {
    type,
    size,
    value,
    flags: defaultValue === undefined ? 0 : assignDefault,
    dependencies: options.dependencies,
  }
}

/**
 * Creates the condition's handle, and the parameters of its node. After the node is added, the parameters contain the
 * graphs.
 */
export function createConditional(
  context: Context,
  graph: CUgraph,
  { type, size, value, flags }: CheckedConditional,
): { readonly handle: bigint; readonly parameters: Uint8Array; readonly bodies: () => readonly CUgraph[] } {
  const out = scratch()
  context._callDriver('cuGraphConditionalHandleCreate', () =>
    cuGraphConditionalHandleCreate(out, graph, context.handle, value, flags),
  )
  const handle = out.u64[0] as bigint
  const parameters = CUgraphNodeParams.allocate({
    type: codeOfType('conditional'),
    conditional: { handle: handle as never, type, size, ctx: context.handle },
  })
  const bodies = (): readonly CUgraph[] => {
    const list = CUgraphNodeParams.read(parameters).conditional.phGraph_out
    return Array.from(new BigUint64Array(readMemory(list, size * 8).buffer), (body) => body as CUgraph)
  }
  return { handle, parameters, bodies }
}
