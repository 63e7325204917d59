import { driver } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { contextSlot, type NativeCall, slots32 } from '@shoal/ffi/calls'
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
let add: NativeCall | undefined
let launch: NativeCall | undefined

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
  const call = (add ??= driver.bind('cuGraphAddNode', 12030, 6))
  const count = dependencies.length
  if (count >= room) grow(count)
  for (let index = 0; index < count; index += 1) {
    const node = dependencies[index] as GraphNode
    // Since it was checked, a getter of what is added may have removed it.
    node._requireThere()
    words[2 * index + 2] = node._low
    words[2 * index + 3] = node._high
  }
  const slots = slots32
  slots[0] = cellsHalves.low
  slots[1] = cellsHalves.high
  slots[2] = graph.low
  slots[3] = graph.high
  // Where there are none, C does not look there.
  slots[4] = listHalves.low
  slots[5] = listHalves.high
  slots[6] = 0
  slots[7] = 0
  slots[8] = count
  slots[9] = 0
  slots[10] = parameters.low
  slots[11] = parameters.high
  slots[2 * contextSlot] = context.low
  slots[2 * contextSlot + 1] = context.high
  return call()
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

/** `cuGraphLaunch`, in the same way. Returns the status. */
export function graphLaunchCall(context: U64Halves, exec: U64Halves, stream: U64Halves): number {
  const call = (launch ??= driver.bind('cuGraphLaunch', 10000, 2))
  const slots = slots32
  slots[0] = exec.low
  slots[1] = exec.high
  slots[2] = stream.low
  slots[3] = stream.high
  slots[2 * contextSlot] = context.low
  slots[2 * contextSlot + 1] = context.high
  return call()
}
