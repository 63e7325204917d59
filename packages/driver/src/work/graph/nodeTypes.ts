import type { CUgraphNodeParams } from '@shoal/cuda-sys/driver'

/** Kinds of graph nodes: names of `CUgraphNodeType`, indexed by code. */
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

/** A kind of graph node. */
export type GraphNodeType = (typeof nodeTypes)[number]

/** Returns the kind for a code. Kinds unknown to this package have a name with their number. */
export function nodeTypeOf(code: number): GraphNodeType {
  return nodeTypes[code] ?? (`type-${code}` as GraphNodeType)
}

/** Returns the code of a kind. */
export function codeOfType(type: GraphNodeType): CUgraphNodeParams['type'] {
  return nodeTypes.indexOf(type) as CUgraphNodeParams['type']
}
