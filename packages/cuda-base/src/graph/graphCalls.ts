import { halvesOf, scratch, type U64Halves } from '@shoal/cuda-base'
import { driver } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { contextSlot, type NativeCall, slots32 } from '@shoal/ffi/calls'

/** A list of nodes where C reads it. It grows with the longest that is asked for. */
let list: NativeMemory | undefined
let listHalves: U64Halves
let words: Uint32Array
let outHalves: U64Halves | undefined
let add: NativeCall | undefined
let launch: NativeCall | undefined

/**
 * `cuGraphAddNode` without the checks of the generated function, which are made already: graphs have thousands of nodes.
 * The new node is the first value of {@link scratch} then. Returns the status.
 */
export function addNodeCall(
  context: U64Halves,
  graph: U64Halves,
  dependencies: readonly { readonly _halves: U64Halves }[],
  parameters: U64Halves,
): number {
  const call = (add ??= driver.bind('cuGraphAddNode', 12030, 6))
  const count = dependencies.length
  if (list === undefined || list.byteLength < count * 8) growList(count)
  for (let index = 0; index < count; index += 1) {
    const { _halves: node } = dependencies[index] as { readonly _halves: U64Halves }
    words[2 * index] = node.low
    words[2 * index + 1] = node.high
  }
  outHalves ??= halvesOf(scratch().address)
  const slots = slots32
  slots[0] = outHalves.low
  slots[1] = outHalves.high
  slots[2] = graph.low
  slots[3] = graph.high
  slots[4] = count === 0 ? 0 : listHalves.low
  slots[5] = count === 0 ? 0 : listHalves.high
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

function growList(count: number): void {
  list = NativeMemory.allocate(Math.max(count * 2, 64) * 8)
  listHalves = halvesOf(list.address)
  words = new Uint32Array(list.buffer)
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
