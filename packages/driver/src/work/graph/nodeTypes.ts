import type { CUgraphNodeParams } from '@shoal/cuda-sys/driver'

/** What kinds of nodes a graph has, by the names of `CUgraphNodeType`; the index is the code. */
export const nodeTypes = [
  'kernel',
  'memcpy',
  'memset',
  'host',
  'graph',
  'empty',
  'wait-event',
  'event-record',
  'ext-semas-signal',
  'ext-semas-wait',
  'mem-alloc',
  'mem-free',
  'batch-mem-op',
  'conditional',
] as const

/** A kind of node, as `CUgraphNodeType` has it. */
export type GraphNodeType = (typeof nodeTypes)[number]

/** The kind of a code; what this package does not know yet goes by its number. */
export function nodeTypeOf(code: number): GraphNodeType {
  return nodeTypes[code] ?? (`type-${code}` as GraphNodeType)
}

/** Its code. */
export function codeOfType(type: GraphNodeType): CUgraphNodeParams['type'] {
  return nodeTypes.indexOf(type) as CUgraphNodeParams['type']
}
