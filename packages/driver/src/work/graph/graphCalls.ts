import { NativeMemory } from '@shoal/ffi'
import { cuGraphAddNodeUnchecked } from '../../core/calls/uncheckedCalls.gen.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import type { GraphNode } from './graphNode.js'

/**
 * Where C writes the node that it adds, and reads those before it. It grows with the longest list that is asked for.
 */
let cells: NativeMemory | undefined
let cellsHalves: U64Halves
let listHalves: U64Halves
let words: Int32Array
let room = 0

/**
 * `cuGraphAddNode` without the checks of the generated function, which are made already: graphs have thousands of
 * nodes. Returns the status; {@link addedLow} and {@link addedHigh} are the new node. @throws DisposedError when a node
 * was removed
 */
export function addNodeCall(
  context: U64Halves,
  graph: U64Halves,
  dependencies: readonly GraphNode[],
  parameters: U64Halves,
): number {
  const count = dependencies.length
  if (count >= room) grow(count)
  for (let index = 0; index < count; index += 1) {
    const node = dependencies[index] as GraphNode
    // Since it was checked, a getter of what is added may have removed it.
    node._requireThere()
    words[2 * index + 2] = node._low
    words[2 * index + 3] = node._high
  }
  // Where there are none, C does not look at the list.
  return cuGraphAddNodeUnchecked(context, cellsHalves, graph, listHalves, count, parameters)
}

/** The lower half of the node that {@link addNodeCall} added last. */
export function addedLow(): number {
  return words[0] as number
}

/** Its upper half. */
export function addedHigh(): number {
  return words[1] as number
}

function grow(count: number): void {
  room = Math.max(count * 2, 64)
  cells = NativeMemory.allocate((room + 1) * 8)
  cellsHalves = halvesOf(cells.address)
  listHalves = halvesOf(cells.address + 8n)
  words = new Int32Array(cells.buffer)
}
