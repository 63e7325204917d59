import { requireInstance } from '@shoal/types'
import type { U64Halves } from '../../core/u64Halves.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import { reachNeed } from '../../memory/buffers/reach.js'
import { Kernel } from '../launch/kernel.js'
import type { LaunchConfig } from '../launch/launchConfig.js'
import { isReference, type KernelArguments, type KernelSignature } from '../launch/signature.js'
import {
  allocateParameters,
  type NodeChecks,
  NodeDescription,
  type NodeWords,
  type WrittenNode,
} from './nodeDescription.js'

/** Sizes of a kernel launch in a graph. The kernel runs on the stream on which the graph is launched. */
export type NodeConfig = Omit<LaunchConfig, 'stream'>

/** Offsets of a kernel's parameters in a `CUgraphNodeParams`. The sizes of a dimension are contiguous. */
export const kernelOffsets = { func: 16, gridDim: 24, blockDim: 36, sharedMemBytes: 48, kernelParams: 56 } as const

// The same offsets in words of 4 and 8 bytes.
const func64 = kernelOffsets.func / 8
const gridDim32 = kernelOffsets.gridDim / 4
const blockDim32 = kernelOffsets.blockDim / 4
const sharedMemBytes32 = kernelOffsets.sharedMemBytes / 4
const kernelParams32 = kernelOffsets.kernelParams / 4

const api = 'kernelNode'
const noPointers: U64Halves = { low: 0, high: 0 }

/**
 * Describes a node that runs a kernel (`CU_GRAPH_NODE_TYPE_KERNEL`). Sizes and arguments are checked immediately. The
 * module and the memory of the arguments must exist at each launch of the graph.
 * @throws TypeError, RangeError, DisposedError
 *
 * @example
 * graph.add(kernelNode(axpy, { grid: 64, block: 256 }, 16_384, 2, x, y))
 */
export function kernelNode<const S extends KernelSignature>(
  kernel: Kernel<S>,
  config: NodeConfig,
  ...args: KernelArguments<S>
): NodeDescription {
  return new KernelDescription(kernel as Kernel<never>, config, args)
}

/** Reusable memory for the node being added. Only the words of a kernel are ever written, and only if they change. */
let shared: ReturnType<typeof allocateParameters> | undefined
/** The sizes in the shared memory. */
let sharedShape: LaunchShape | undefined

function writeShape({ u32 }: NodeWords, shape: LaunchShape): void {
  u32[gridDim32] = shape.gridX
  u32[gridDim32 + 1] = shape.gridY
  u32[gridDim32 + 2] = shape.gridZ
  u32[blockDim32] = shape.blockX
  u32[blockDim32 + 1] = shape.blockY
  u32[blockDim32 + 2] = shape.blockZ
  u32[sharedMemBytes32] = shape.sharedMemory
  sharedShape = shape
}

type LaunchShape = ReturnType<Kernel['_checkNode']>

/**
 * Whether a configuration has exactly the sizes that were checked last. Returns false if reading it throws; the full
 * check then reports the error.
 */
function isSame(shape: LaunchShape, config: NodeConfig): boolean {
  try {
    const { grid, block } = config
    if (grid !== shape.grid || block !== shape.block || shape.sharedMemory !== 0) return false
    if (Object.getPrototypeOf(config) !== Object.prototype) return false
    let keys = 0
    for (const _ in config) keys += 1
    return keys === 2
  } catch {
    return false
  }
}

/** Whether a value is a kernel. A revoked proxy is not, and reading it would throw. */
function isKernel(value: unknown): value is Kernel {
  try {
    return value instanceof Kernel && value._identity !== undefined
  } catch {
    return false
  }
}

/** Graphs have thousands of kernel nodes. So each is a single object, without encoded parameters. */
class KernelDescription extends NodeDescription {
  readonly #kernel: Kernel
  readonly #shape: LaunchShape
  readonly #args: readonly unknown[]

  constructor(kernel: Kernel, config: NodeConfig, args: readonly unknown[]) {
    if (!isKernel(kernel)) requireInstance(kernel, api, 'kernel', Kernel)
    super('kernel', undefined, kernel._attributes)
    kernel.module._requireUsable()
    const known = kernel._nodeShape
    const isKnown = known !== undefined && args.length === kernel.signature.length && isSame(known, config)
    this.#kernel = kernel
    this.#shape = isKnown ? known : kernel._checkNode(config, args.length, api)
    this.#args = args
    if (args.length > 0) this.#pack()
  }

  /** Checks and packs the arguments. Returns the pointers for C, valid until the next arguments are packed. */
  #pack(): U64Halves {
    const block = this.#kernel._takeNodeBlock(api)
    block.write(this.#args)
    this.#kernel._giveNodeBlock(block)
    return block.pointers
  }

  override get _soleNeed(): object | undefined {
    return this.#args.length === 0 ? this.#kernel : undefined
  }

  override _addNeeds(to: NodeChecks): void {
    const kernel = this.#kernel
    if (!to.has(kernel)) for (const [object, check] of kernel._ownNeeds) to.set(object, check)
    const args = this.#args
    for (let index = 0; index < args.length; index += 1) {
      const value = args[index]
      if (typeof value !== 'object' || value === null || !isReference(kernel.signature[index])) continue
      const { context } = kernel.module
      const isOwn = value instanceof DeviceBuffer && value._addressIn(context) !== undefined
      const need = isOwn ? undefined : reachNeed(context, value)
      if (need !== undefined) to.set(need.key, need.check)
      if (to.has(value)) continue
      to.set(value, () => {
        const block = kernel._takeNodeBlock(api)
        block.recheck(index, value)
        kernel._giveNodeBlock(block)
      })
    }
  }

  override _write(): WrittenNode {
    const kernel = this.#kernel
    kernel._attributes?.check()
    const pointers = this.#args.length === 0 ? noPointers : this.#pack()
    shared ??= allocateParameters()
    if (sharedShape !== this.#shape) writeShape(shared, this.#shape)
    const { written, u32, u64 } = shared
    u64[func64] = kernel._function
    u32[kernelParams32] = pointers.low
    u32[kernelParams32 + 1] = pointers.high
    return written
  }
}
