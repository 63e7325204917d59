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

/** The sizes of a launch in a graph, whose stream is that of the graph's launch. */
export type NodeConfig = Omit<LaunchConfig, 'stream'>

/** Where the parameters of a kernel lie in a `CUgraphNodeParams`; sizes follow each other. */
export const kernelOffsets = { func: 16, gridDim: 24, blockDim: 36, sharedMemBytes: 48, kernelParams: 56 } as const

// The same in words of 4 bytes, and of 8.
const func64 = kernelOffsets.func / 8
const gridDim32 = kernelOffsets.gridDim / 4
const blockDim32 = kernelOffsets.blockDim / 4
const sharedMemBytes32 = kernelOffsets.sharedMemBytes / 4
const kernelParams32 = kernelOffsets.kernelParams / 4

const api = 'kernelNode'
const noPointers: U64Halves = { low: 0, high: 0 }

/**
 * A node that runs a kernel (`CU_GRAPH_NODE_TYPE_KERNEL`). Sizes and arguments are checked now; the module and the
 * memory of the arguments must be there whenever the graph is launched.
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

/** Memory for the one that is added: of its words only those of a kernel are ever written, and those that change. */
let shared: ReturnType<typeof allocateParameters> | undefined
/** The sizes that it has. */
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
 * Whether a configuration has the sizes that were checked last, and nothing else. What throws is asked again, and
 * refused.
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

/** A revoked proxy, which cannot be asked, is none. */
function isKernel(value: unknown): value is Kernel {
  try {
    return value instanceof Kernel && value._identity !== undefined
  } catch {
    return false
  }
}

/** Graphs have thousands of these: one object each, and nothing that is made for the library to read. */
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

  /** Checks the arguments, and gives where C reads them until the next are packed. */
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
