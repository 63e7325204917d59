import { type Context, halvesOf, type U64Halves } from '@shoal/cuda-base'
import { CUgraphNodeParams } from '@shoal/cuda-sys/driver'
import { NativeMemory, type StructValue } from '@shoal/ffi'
import { inspectKey, inspectLine, loadedFrom, requireInstance } from '@shoal/types'
import type { SharedCallback } from './nodeResources.js'
import { codeOfType, type GraphNodeType } from './nodeTypes.js'

/** How a node is described to the library: its part of the `CUgraphNodeParams`, and what must stay while C reads it. */
export interface WrittenParameters {
  readonly parameters: StructValue<CUgraphNodeParams>
  /** Memory that the parameters name. */
  readonly memory?: unknown
}

/** An attribute of a kernel's launch: its number, and its value of 64 bytes. */
export interface KernelNodeAttribute {
  readonly id: number
  readonly value: Uint8Array
}

/** Where the parameters of a kernel lie in a `CUgraphNodeParams`; sizes follow each other. */
export const kernelOffsets = { func: 16, gridDim: 24, blockDim: 36, sharedMemBytes: 48, kernelParams: 56 } as const

interface Parameters {
  readonly native: NativeMemory
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly halves: U64Halves
}

let shared: Parameters | undefined

/** Memory for one `CUgraphNodeParams`, which each call writes anew. */
function sharedParameters(): Parameters {
  if (shared === undefined) {
    const native = NativeMemory.allocate(CUgraphNodeParams.size)
    shared = { native, bytes: native.bytes, view: new DataView(native.buffer), halves: halvesOf(native.address) }
  }
  return shared
}

/** What describes a node; see {@link NodeDescription}. */
interface Content {
  readonly type: GraphNodeType
  /** Its parameters for a graph of `context`. Left out by kernels, which are many in a graph: they write them by themselves. */
  readonly write?: (context: Context, api: string) => WrittenParameters
  /** Packs the arguments of a kernel, and gives what C calls `kernelParams`. Its getters may write other nodes. */
  readonly packArguments?: () => bigint
  /** Writes the part behind the type into zeroed memory, where {@link kernelOffsets} say. */
  readonly writeKernel?: (view: DataView, kernelParams: bigint) => void
  /** Objects that must be there when the node runs, each with a check that throws once it is gone. */
  readonly needs?: ReadonlyMap<object, () => void>
  readonly callback?: SharedCallback
  /** What a kernel's launches have beside their parameters: numbers and values of `CUlaunchAttribute`. */
  readonly kernelAttributes?: Iterable<KernelNodeAttribute> | undefined
}

const none: ReadonlyMap<object, () => void> = new Map()
const noAttributes: readonly KernelNodeAttribute[] = []

/**
 * What a node does, apart from any graph: `copyNode`, `fillNode`, `kernelNode` and their kin make one. A graph adds it, a
 * node of a graph and an executable graph take it as what to do from now on.
 */
export class NodeDescription {
  static readonly [loadedFrom]: string = import.meta.url

  /** What the node will do. */
  readonly type: GraphNodeType
  /** @internal */
  readonly _needs: ReadonlyMap<object, () => void>
  /** @internal */
  readonly _callback: SharedCallback | undefined
  /** @internal */
  readonly _kernelAttributes: readonly KernelNodeAttribute[]
  readonly #write: Content['write']
  readonly #packArguments: Content['packArguments']
  readonly #writeKernel: Content['writeKernel']

  /** @internal */
  constructor({ type, write, packArguments, writeKernel, needs = none, callback, kernelAttributes }: Content) {
    this.type = type
    this._needs = needs
    this._callback = callback
    this._kernelAttributes = kernelAttributes === undefined ? noAttributes : [...kernelAttributes]
    this.#write = write
    this.#packArguments = packArguments
    this.#writeKernel = writeKernel
  }

  /**
   * @internal The `CUgraphNodeParams` of the node in a graph of `context`, until the next is written, and what must be kept
   * while C reads it.
   */
  _write(
    context: Context,
    api: string,
  ): { readonly parameters: NativeMemory; readonly halves: U64Halves; readonly memory: unknown } {
    for (const check of this._needs.values()) check()
    const { native, bytes, view, halves } = sharedParameters()
    const write = this.#write?.(context, api)
    const kernelParams = this.#packArguments?.() ?? 0n
    bytes.fill(0)
    view.setInt32(0, codeOfType(this.type), true)
    if (write !== undefined) CUgraphNodeParams.write(native, write.parameters)
    this.#writeKernel?.(view, kernelParams)
    return { parameters: native, halves, memory: write?.memory }
  }

  get [Symbol.toStringTag](): string {
    return 'NodeDescription'
  }

  [inspectKey](): string {
    return inspectLine('NodeDescription', { type: this.type })
  }
}

/** @throws TypeError */
export function requireDescription(value: unknown, api: string, name: string): NodeDescription {
  return requireInstance<NodeDescription>(value, api, name, NodeDescription as never)
}
