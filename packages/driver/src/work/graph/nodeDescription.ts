import { CUgraphNodeParams } from '@shoal/cuda-sys/driver'
import { NativeMemory, type StructValue } from '@shoal/ffi'
import { inspectKey, inspectLine, loadedFrom, PublicObject, requireInstance, requireMade } from '@shoal/types'
import type { SharedCallback } from '../../core/context/capturing.js'
import type { Context } from '../../core/context/context.js'
import { halvesOf, type U64Halves } from '../../core/u64Halves.js'
import type { Kernel } from '../launch/kernel.js'
import type { NodeResources } from './nodeResources.js'
import { codeOfType, type GraphNodeType } from './nodeTypes.js'

/** The node's part of the `CUgraphNodeParams`, and objects to keep while C reads it. */
export interface WrittenParameters {
  readonly parameters: StructValue<CUgraphNodeParams>
  /** Memory that the parameters refer to. */
  readonly memory?: unknown
}

/** Launch attributes of a kernel. */
export type KernelAttributes = NonNullable<Kernel['_attributes']>

/** Objects that a node needs when it runs. Each has a check that throws after it was disposed of. */
export type NodeChecks = Map<object, () => void>

/** The `CUgraphNodeParams` of a node, valid until the next is written, and objects to keep while C reads it. */
export interface WrittenNode {
  readonly parameters: NativeMemory
  readonly halves: U64Halves
  readonly memory: unknown
}

/** A `CUgraphNodeParams` as words of 4 bytes and of 8 bytes. */
export interface NodeWords {
  readonly u32: Uint32Array
  readonly u64: BigUint64Array
}

interface Shared extends NodeWords {
  readonly written: WrittenNode
}

/** Allocates zeroed memory for one `CUgraphNodeParams`. */
export function allocateParameters(): Shared {
  const native = NativeMemory.allocate(CUgraphNodeParams.size)
  const u32 = new Uint32Array(native.buffer)
  u32.fill(0)
  const written = { parameters: native, halves: halvesOf(native.address), memory: undefined }
  return { written, u32, u64: new BigUint64Array(native.buffer) }
}

/** Memory that each call overwrites. */
let shared: Shared | undefined

/** The parts of a {@link NodeDescription}. */
interface Content {
  /**
   * Writes the parameters for a graph of `context` into zeroed memory, after the type. Must not call code of the
   * program.
   */
  readonly writeWords?: (words: NodeWords, context: Context) => void
  /** Returns the parameters, for kinds of nodes that graphs have few of. */
  readonly write?: (context: Context, api: string) => WrittenParameters
  /** Objects that the node needs when it runs. */
  readonly needs?: ReadonlyMap<object, () => void>
  readonly callback?: SharedCallback
  /** A graph of which the node runs a copy. */
  readonly child?: { readonly _resources: NodeResources }
}

/**
 * A description of a node's work, independent of a graph. Created by `copyNode`, `fillNode`, `kernelNode` and others.
 *
 * `Graph.add` adds it as a node. `GraphNode.update` and `GraphExec.updateNode` replace a node's work by it.
 */
export class NodeDescription extends PublicObject {
  static get [loadedFrom](): string {
    return import.meta.url
  }

  /** Kind of the node. */
  readonly type: GraphNodeType
  /** Undefined for kernels, which have their own class, because graphs have many of them. */
  readonly #content: Content | undefined

  /** @internal Launch attributes of a kernel. */
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

  /**
   * @internal Whether a value is a description. Short, because it runs for each node. A revoked proxy is not a
   * description.
   */
  static _is(value: unknown): value is NodeDescription {
    return typeof value === 'object' && value !== null && #content in value
  }

  /** @internal The only object that the node needs, if there is just one. */
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

  /** @internal Adds the objects that the node needs when it runs. */
  _addNeeds(to: NodeChecks): void {
    const needs = this.#content?.needs
    if (needs !== undefined) for (const [object, check] of needs) to.set(object, check)
  }

  /**
   * @internal Returns the parameters of the node in a graph of `context`. @throws DisposedError when a needed object is
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
