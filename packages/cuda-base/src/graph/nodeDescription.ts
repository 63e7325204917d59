import type { Context } from '@shoal/cuda-base'
import { CUgraphNodeParams } from '@shoal/cuda-sys/driver'
import type { StructValue } from '@shoal/ffi'
import { inspectKey, inspectLine, loadedFrom, requireInstance } from '@shoal/types'
import type { SharedCallback } from './nodeResources.js'
import { type GraphNodeType, nodeTypes } from './nodeTypes.js'

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

/** What describes a node; see {@link NodeDescription}. */
interface Content {
  readonly type: GraphNodeType
  /** Its parameters for a graph of `context`. */
  readonly write: (context: Context, api: string) => WrittenParameters
  /** Objects that must be there when the node runs, each with a check that throws once it is gone. */
  readonly needs?: ReadonlyMap<object, () => void>
  readonly callback?: SharedCallback
  /** What a kernel's launches have beside their parameters: numbers and values of `CUlaunchAttribute`. */
  readonly kernelAttributes?: Iterable<KernelNodeAttribute>
}

/**
 * What a node does, apart from any graph: `copyNode`, `fillNode`, `kernel.node` and their kin make one. A graph adds it, a
 * node of a graph and an executable graph take it as what to do from now on.
 */
export class NodeDescription {
  static readonly [loadedFrom]: string = import.meta.url

  readonly type: GraphNodeType
  /** @internal */
  readonly _needs: ReadonlyMap<object, () => void>
  /** @internal */
  readonly _callback: SharedCallback | undefined
  /** @internal */
  readonly _kernelAttributes: readonly KernelNodeAttribute[]
  readonly #write: Content['write']

  /** @internal */
  constructor({ type, write, needs = new Map(), callback, kernelAttributes = [] }: Content) {
    this.type = type
    this._needs = needs
    this._callback = callback
    this._kernelAttributes = [...kernelAttributes]
    this.#write = write
  }

  /** @internal The `CUgraphNodeParams` of the node in a graph of `context`, and what must be kept while C reads it. */
  _write(context: Context, api: string): { readonly bytes: Uint8Array; readonly memory: unknown } {
    for (const check of this._needs.values()) check()
    const { parameters, memory } = this.#write(context, api)
    const type = nodeTypes.indexOf(this.type)
    return { bytes: CUgraphNodeParams.allocate({ ...parameters, type: type as CUgraphNodeParams['type'] }), memory }
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
