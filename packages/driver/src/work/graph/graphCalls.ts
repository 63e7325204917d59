import { NativeMemory } from '@shoal/ffi'
import { cuGraphAddNodeUnchecked } from '../../core/calls/uncheckedCalls.gen.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import type { GraphNode } from './graphNode.js'

/** Memory for the added node and its dependencies. It grows with the longest list. */
let cells: NativeMemory | undefined
let cellsHalves: U64Halves
let listHalves: U64Halves
let words: Int32Array
let room = 0

/**
 * `cuGraphAddNode` without the checks of the generated function, which the caller has made: graphs have thousands of
 * nodes. Returns the status; {@link addedLow} and {@link addedHigh} return the new node. @throws DisposedError when a
 * dependency was removed
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
    // A getter of the description may have removed the node since its check.
    node._requireThere()
    words[2 * index + 2] = node._low
    words[2 * index + 3] = node._high
  }
  // C does not read the list if it is empty.
  return cuGraphAddNodeUnchecked(context, cellsHalves, graph, listHalves, count, parameters)
}

/** Returns the lower half of the handle of {@link addNodeCall}'s last node. */
export function addedLow(): number {
  return words[0] as number
}

/** Returns the upper half of that handle. */
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
