/** Work of graphs, each as a captured call and as a node. */

import { DeviceBuffer } from '@shoal/driver'
import type { GraphNode, NodeDescription } from '@shoal/driver/graph'
import {
  copyNode,
  emptyNode,
  eventRecordNode,
  fillNode,
  hostNode,
  kernelNode,
  memoryOperationsNode,
} from '@shoal/driver/graph'
import type { Need, Step } from '../graphModel.js'
import { arrays, type Block, bytesOf, type Memory, type ModelType } from '../memory.js'
import { Mismatch } from '../operation.js'
import type { EventModel, StreamModel, World } from '../world.js'
import { adding, change, liveModules, type ModuleModel, shapeFor, signatures, wordsOf } from './kernels.js'

/** Work that can be captured, and can be added as a node. */
export interface Work {
  readonly told: string
  readonly uses: readonly { readonly block: Block; readonly write: boolean }[]
  readonly needs: readonly Need[]
  readonly canBeDisabled: boolean
  /** Default: true. */
  readonly canBeCaptured?: boolean
  apply(stream: StreamModel): void
  /** Queues the work on a stream. */
  queue(stream: StreamModel): void
  describe(): NodeDescription
  /** Returns the same work with other operands. */
  readonly again: () => Work | undefined
}

/** Returns the object that owns the memory. */
export function needOf({ root }: Memory): Need {
  return root.object as Need
}

const wide: readonly ModelType[] = ['i64', 'f64']

function fillWork(world: World, memory: Memory): Work {
  // CUDA cannot fill 8-byte elements whose halves differ.
  const value = wide.includes(memory.dtype) ? 0 : world.random.integer(0, 100)
  const element = (memory.dtype === 'i64' ? BigInt(value) : value) as never
  return {
    told: `fill ${memory.name} with ${value}`,
    uses: [{ block: memory.root.block, write: true }],
    needs: [needOf(memory)],
    canBeDisabled: true,
    apply() {
      memory.root.block.write(memory.offset, bytesOf(new arrays[memory.dtype](memory.length).fill(element)))
    },
    queue: ({ stream }) => void memory.buffer.fill(element, { stream }),
    describe: () => fillNode(memory.buffer, element),
    again: () => someFill(world, memory.root.device),
  }
}

function someFill(world: World, device: number): Work | undefined {
  const memory = world.pick(memoriesOf(world, device))
  return memory === undefined ? undefined : fillWork(world, memory)
}

/** Returns memory of the device. */
function memoriesOf(world: World, device: number, dtype?: ModelType, length?: number): Memory[] {
  return world.liveMemories(dtype, length).filter(({ root }) => root.device === device)
}

/** Returns work that allocates memory in a captured stream, copies through it to other memory, and frees it. */
export function wayOfOwnMemory(world: World, device: number): Work | undefined {
  const target = world.pick(memoriesOf(world, device).filter(({ dtype }) => !wide.includes(dtype)))
  if (target === undefined) return undefined
  const { dtype, length } = target
  const value = world.random.integer(0, 100)
  return {
    told: `${target.name} by way of memory that is allocated meanwhile`,
    uses: [{ block: target.root.block, write: true }],
    needs: [needOf(target)],
    canBeDisabled: false,
    apply: () => target.root.block.write(target.offset, bytesOf(new arrays[dtype](length).fill(value as never))),
    queue: ({ stream }) => {
      const memory = DeviceBuffer.allocateOn(stream, dtype, length)
      memory.fill(value as never, { stream })
      target.buffer.copyFrom(memory as never, { stream })
      memory.disposeOn(stream)
    },
    describe: () => emptyNode(),
    again: () => undefined,
  }
}

function someCopy(world: World, device: number): Work | undefined {
  const target = world.pick(memoriesOf(world, device))
  if (target === undefined) return undefined
  const { dtype, length } = target
  const source = world.pick(
    memoriesOf(world, device, dtype, length).filter(({ root }) => root.block !== target.root.block),
  )
  if (source === undefined) return undefined
  return {
    told: `copy ${source.name} to ${target.name}`,
    uses: [
      { block: target.root.block, write: true },
      { block: source.root.block, write: false },
    ],
    needs: [needOf(target), needOf(source)],
    canBeDisabled: true,
    apply() {
      target.root.block.copy(target.offset, source.root.block.expected(source.offset, source.byteLength))
    },
    queue: ({ stream }) => void target.buffer.copyFrom(source.buffer as never, { stream }),
    describe: () => copyNode(target.buffer, source.buffer),
    again: () => someCopy(world, device),
  }
}

/** Returns a copy from or to page-locked memory. */
function somePinnedCopy(world: World, device: number): Work | undefined {
  const pairs = world
    .livePinned()
    .flatMap((pinned) =>
      memoriesOf(world, device, pinned.dtype, pinned.buffer.length).map((memory) => [pinned, memory] as const),
    )
  const pair = world.pick(pairs)
  if (pair === undefined) return undefined
  const [pinned, memory] = pair
  const isUpload = world.chance(0.5)
  const there: End = { block: pinned.block, offset: 0, byteLength: pinned.block.bytes.length }
  const here: End = { block: memory.root.block, offset: memory.offset, byteLength: memory.byteLength }
  const [target, source] = isUpload ? [here, there] : [there, here]
  return {
    told: isUpload ? `copy ${pinned.name} to ${memory.name}` : `copy ${memory.name} to ${pinned.name}`,
    uses: [
      { block: target.block, write: true },
      { block: source.block, write: false },
    ],
    needs: [needOf(memory), pinned.buffer],
    canBeDisabled: true,
    // A copy to the host reports its end, and a captured copy has no end to report.
    canBeCaptured: isUpload,
    apply: () => target.block.copy(target.offset, source.block.expected(source.offset, source.byteLength)),
    queue: ({ stream }) => void memory.buffer.copyFrom(pinned.buffer as never, { stream }),
    describe: () => (isUpload ? copyNode(memory.buffer, pinned.buffer) : copyNode(pinned.buffer, memory.buffer)),
    again: () => somePinnedCopy(world, device),
  }
}

interface End {
  readonly block: Block
  readonly offset: number
  readonly byteLength: number
}

function someKernel(world: World, device: number): Work | undefined {
  const model = world.pick(liveModules(world, device))
  const memory = model === undefined ? undefined : wordsOf(world, device)
  return model === undefined || memory === undefined ? undefined : kernelWork(world, model, memory)
}

function kernelWork(world: World, model: ModuleModel, memory: Memory): Work {
  const kernel = model.module.kernel('addEach', signatures.addEach)
  const value = world.random.word()
  const shape = shapeFor(world, memory.length)
  const { buffer, length } = memory
  return {
    told: `addEach of ${memory.name}`,
    uses: [{ block: memory.root.block, write: true }],
    needs: [needOf(memory), model.module],
    canBeDisabled: true,
    apply: () => change(memory, adding(value)),
    queue: ({ stream }) => kernel.launch({ ...shape, stream }, buffer, value, length),
    describe: () => kernelNode(kernel, shape, buffer, value, length),
    // The node must keep its function.
    again: () => {
      const other = model.module.disposed ? undefined : wordsOf(world, model.device)
      return other === undefined ? undefined : kernelWork(world, model, other)
    },
  }
}

/** Returns a write of one word by the stream. */
function someWord(world: World, device: number): Work | undefined {
  const memory = world.pick(memoriesOf(world, device).filter(({ dtype }) => /32|64/.test(dtype)))
  if (memory === undefined) return undefined
  const index = world.random.integer(0, memory.length - 1)
  const bytes = memory.byteLength / memory.length
  const offset = memory.offset + index * bytes
  const word = new Uint8Array(8)
  const value = world.random.word()
  new DataView(word.buffer).setUint32(0, value, true)
  const part = memory.buffer.slice(index, index + 1)
  return {
    told: `write ${value} to word ${index} of ${memory.name}`,
    uses: [{ block: memory.root.block, write: true }],
    needs: [needOf(memory)],
    canBeDisabled: false,
    apply: () => memory.root.block.write(offset, word.subarray(0, bytes)),
    queue: ({ stream }) => void stream.writeValue(part, value),
    describe: () =>
      memoryOperationsNode([
        { operation: 'write', memory: part, value },
        { operation: 'wait', memory: part, value, condition: 'eq' },
      ]),
    again: () => someWord(world, device),
  }
}

function someRecord(world: World, device: number): Work | undefined {
  const event = world.pick(world.events.filter((one) => !one.disposed && one.device === device))
  return event === undefined ? undefined : recordWork(world, event)
}

function recordWork(world: World, model: EventModel): Work {
  return {
    told: `record ${model.name}`,
    uses: [],
    needs: [model.event],
    canBeDisabled: false,
    apply: ({ queue }) => {
      model.mark = [...queue.clock]
    },
    // Without `external`, a captured record would only order the capture.
    queue: ({ stream }) => void stream.record(model.event, { external: true }),
    describe: () => eventRecordNode(model.event),
    again: () => someRecord(world, model.device),
  }
}

function someCall(world: World): Work {
  let launches = 0
  let calls = 0
  const count = (): void => {
    calls += 1
    if (calls > launches) throw new Mismatch(`a host node was called ${calls} times in ${launches} launches`)
  }
  return {
    told: 'call a function',
    uses: [],
    needs: [],
    canBeDisabled: false,
    canBeCaptured: false,
    apply: () => {
      launches += 1
    },
    queue: () => {},
    describe: () => hostNode(count),
    again: () => someCall(world),
  }
}

const nothing: Work = {
  told: 'nothing',
  uses: [],
  needs: [],
  canBeDisabled: false,
  canBeCaptured: false,
  apply: () => {},
  queue: () => {},
  describe: () => emptyNode(),
  again: () => undefined,
}

/** Returns some work for a device, or undefined if there are no operands. */
export function someWork(world: World, device: number): Work | undefined {
  switch (world.random.integer(0, 9)) {
    case 0:
    case 1:
      return someFill(world, device)
    case 2:
    case 3:
      return someCopy(world, device)
    case 4:
      return somePinnedCopy(world, device)
    case 5:
    case 6:
      return someKernel(world, device)
    case 7:
      return someWord(world, device)
    case 8:
      return someRecord(world, device)
    default:
      return world.chance(0.5) ? someCall(world) : nothing
  }
}

/** Returns the model of work that was captured or added as a node. */
export function stepOf(work: Work, node?: GraphNode): Step {
  const { told, uses, needs, apply, canBeDisabled, again } = work
  if (node === undefined) return { told, uses, needs, apply, canBeDisabled }
  return {
    told,
    uses,
    needs,
    apply,
    canBeDisabled,
    node,
    again: (now) => {
      const other = again()
      return other === undefined ? undefined : { description: other.describe(), step: stepOf(other, now) }
    },
  }
}
