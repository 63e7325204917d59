import { CUgraphNodeParams } from '@shoal/cuda-sys/driver'
import { NativeMemory, type StructValue } from '@shoal/ffi'
import { inspectKey, inspectLine, loadedFrom, PublicObject, requireInstance, requireMade } from '@shoal/types'
import type { SharedCallback } from '../../core/context/capturing.js'
import type { Context } from '../../core/context/context.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import type { Kernel } from '../launch/kernel.js'
import type { NodeResources } from './nodeResources.js'
import { codeOfType, type GraphNodeType } from './nodeTypes.js'

/** How a node is described to the library: its part of the `CUgraphNodeParams`, and what must stay while C reads it. */
export interface WrittenParameters {
  readonly parameters: StructValue<CUgraphNodeParams>
  /** Memory that the parameters name. */
  readonly memory?: unknown
}

/** What the launches of a kernel have beside sizes and arguments. */
export type KernelAttributes = NonNullable<Kernel['_attributes']>

/** Objects that must be there when a node runs, each with a check that throws once it is gone. */
export type NodeChecks = Map<object, () => void>

/** The `CUgraphNodeParams` of a node, until the next is written, and what must be kept while C reads it. */
export interface WrittenNode {
  readonly parameters: NativeMemory
  readonly halves: U64Halves
  readonly memory: unknown
}

/** A `CUgraphNodeParams` as words of 4 bytes and of 8. */
export interface NodeWords {
  readonly u32: Uint32Array
  readonly u64: BigUint64Array
}

interface Shared extends NodeWords {
  readonly written: WrittenNode
}

/** Memory for one `CUgraphNodeParams`, all zero. */
export function allocateParameters(): Shared {
  const native = NativeMemory.allocate(CUgraphNodeParams.size)
  const u32 = new Uint32Array(native.buffer)
  u32.fill(0)
  const written = { parameters: native, halves: halvesOf(native.address), memory: undefined }
  return { written, u32, u64: new BigUint64Array(native.buffer) }
}

/** What each call writes anew. */
let shared: Shared | undefined

/** What describes a node; see {@link NodeDescription}. */
interface Content {
  /**
   * Writes its parameters for a graph of `context` behind the type into zeroed memory; must not call what is not ours.
   */
  readonly writeWords?: (words: NodeWords, context: Context) => void
  /** Its parameters, of nodes that are not many in a graph. */
  readonly write?: (context: Context, api: string) => WrittenParameters
  /** What must be there when the node runs. */
  readonly needs?: ReadonlyMap<object, () => void>
  readonly callback?: SharedCallback
  /** A graph that it runs a copy of. */
  readonly child?: { readonly _resources: NodeResources }
}

/**
 * What a node does, apart from any graph: `copyNode`, `fillNode`, `kernelNode` and their kin make one. A graph adds it,
 * a node of a graph and an executable graph take it as what to do from now on.
 */
export class NodeDescription extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** What the node will do. */
  readonly type: GraphNodeType
  /** Left out by kernels, which are many in a graph: they have a class of their own. */
  readonly #content: Content | undefined

  /** @internal Of a kernel. */
  readonly _attributes: KernelAttributes | undefined

  /** @internal */
  constructor(type: GraphNodeType, content?: Content, attributes?: KernelAttributes) {
    if (new.target === NodeDescription)
      requireMade(content, 'NodeDescription', 'kernelNode, copyNode or another function of nodes', 'object')
    super()
    this.type = type
    this.#content = content
    this._attributes = attributes
  }

  /** @internal Short, as it is asked of each node. A revoked proxy, which cannot be asked, is none. */
  static _is(value: unknown): value is NodeDescription {
    return typeof value === 'object' && value !== null && #content in value
  }

  /** @internal The object that stands for all it needs, where there is one. */
  get _soleNeed(): object | undefined {
    return undefined
  }

  /** @internal */
  get _callback(): SharedCallback | undefined {
    return this.#content?.callback
  }

  /** @internal */
  get _child(): Content['child'] {
    return this.#content?.child
  }

  /** @internal Adds what must be there when the node runs. */
  _addNeeds(to: NodeChecks): void {
    const needs = this.#content?.needs
    if (needs !== undefined) for (const [object, check] of needs) to.set(object, check)
  }

  /**
   * @internal The parameters of the node in a graph of `context`. @throws DisposedError when something that it needs is
   * gone
   */
  _write(context: Context, api: string): WrittenNode {
    const { needs, write, writeWords } = this.#content as Content
    if (needs !== undefined) for (const check of needs.values()) check()
    shared ??= allocateParameters()
    const { written, u32 } = shared
    const given = write?.(context, api)
    u32.fill(0)
    u32[0] = codeOfType(this.type)
    writeWords?.(shared, context)
    if (given === undefined) return written
    CUgraphNodeParams.write(written.parameters, given.parameters)
    return { ...written, memory: given.memory }
  }

  get [Symbol.toStringTag](): string {
    return 'NodeDescription'
  }

  override [inspectKey](): string {
    return inspectLine('NodeDescription', { type: this.type })
  }
}

/** @throws TypeError */
export function requireDescription(value: unknown, api: string, name: string): NodeDescription {
  if (NodeDescription._is(value)) return value
  return requireInstance<NodeDescription>(value, api, name, NodeDescription as never)
}
