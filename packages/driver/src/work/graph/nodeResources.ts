import { DisposedError, isInstance } from '@shoal/types'
import type { CaptureNeeds, GraphUse } from '../../core/context/capturing.js'
import type { Context } from '../../core/context/context.js'
import type { Stream } from '../../core/stream/stream.js'
import type { Block } from '../../memory/buffers/caching/block.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import type { NodeDescription } from './nodeDescription.js'

/**
 * Resources of a graph's nodes: objects needed at each launch, functions that C calls, and contexts (also of inner
 * graphs), which stay until the graph ends. A graph and each of its executable graphs have separate lists of the same
 * resources.
 */
export class NodeResources implements CaptureNeeds {
  /** The needed objects. Each has a check that throws after it was disposed of. */
  readonly #checks = new Map<object, () => void>()
  /** The checks as an array, for launches. */
  #list: readonly (() => void)[] | undefined
  /** Blocks of caching pools among the objects, from the time of {@link #list}. */
  #blocks: readonly Block[] = []
  /** Objects that are kept alive but may be disposed of. */
  readonly #held = new Set<object>()
  /** Functions that C calls, and objects that count their graphs. */
  readonly #uses = new Set<GraphUse>()
  /** The last node's only need. The next node usually has the same. */
  #lastSole: object | undefined

  readonly #contexts = new Set<Context>()

  constructor(context?: Context) {
    if (context !== undefined) this.#hold(context)
  }

  #hold(context: Context): void {
    if (this.#contexts.has(context)) return
    this.#contexts.add(context)
    context._addChild()
  }

  /** Adds an object that is needed from now on. */
  add(object: object, check: () => void): void {
    this.#checks.set(object, check)
    this.#list = undefined
  }

  /** Keeps an object alive that may be disposed of. */
  hold(object: object): void {
    this.#held.add(object)
  }

  /** Adds the needs of a node. */
  addNeedsOf(description: NodeDescription): void {
    const { _soleNeed: sole } = description
    if (sole !== undefined) {
      if (sole === this.#lastSole) return
      this.#lastSole = sole
    }
    description._addNeeds(this.#checks)
    this.#list = undefined
    const { _callback: callback, _child: child } = description
    if (callback !== undefined) this.addUse(callback)
    if (child !== undefined) this.addAll(child._resources)
  }

  /**
   * Replaces these objects by those of `other`. Keeps the functions, because launches in flight may still call them.
   */
  replaceBy(other: NodeResources): void {
    this.#checks.clear()
    this.#held.clear()
    this.#lastSole = undefined
    this.#list = undefined
    this.addAll(other)
  }

  /** Adds all resources of `other`. */
  addAll(other: NodeResources): void {
    for (const [object, check] of other.#checks) this.add(object, check)
    for (const object of other.#held) this.#held.add(object)
    for (const use of other.#uses) this.addUse(use)
    for (const context of other.#contexts) this.#hold(context)
  }

  /** Becomes a user of a function that C calls, or of an object that counts its graphs. */
  addUse(use: GraphUse): void {
    if (this.#uses.has(use)) return
    this.#uses.add(use)
    use.users += 1
  }

  /** Checks all needed objects. @throws DisposedError naming the operation when an object is gone */
  check(operation: string): void {
    const list = this.#list ?? this.#makeList()
    try {
      for (let index = 0; index < list.length; index += 1) (list[index] as () => void)()
    } catch (cause) {
      // The memory behind a view became shorter.
      if (cause instanceof RangeError)
        throw new DisposedError({ object: 'memory that the graph uses', operation, cause })
      if (!(cause instanceof DisposedError)) throw cause
      throw new DisposedError({ object: cause.object, operation, cause })
    }
  }

  #makeList(): readonly (() => void)[] {
    this.#blocks = [...this.#checks.keys()].flatMap((object) => {
      return isInstance<DeviceBuffer>(object, DeviceBuffer as never) && !object.disposed ? (object._block ?? []) : []
    })
    this.#list = [...this.#checks.values()]
    return this.#list
  }

  /** Whether the checked objects include memory of caching pools. */
  get hasBlocks(): boolean {
    return this.#blocks.length > 0
  }

  /** Tells caching pools that a stream's work uses their memory. */
  recordUse(stream: Stream): void {
    for (const block of this.#blocks) block.owner.addUser(block, stream)
  }

  /** Releases everything after the graph was destroyed. */
  release(): void {
    this.#checks.clear()
    this.#lastSole = undefined
    this.#list = undefined
    this.#held.clear()
    this.#blocks = []
    const uses = [...this.#uses]
    this.#uses.clear()
    for (const use of uses) {
      use.users -= 1
      if (use.users === 0) use.unused()
    }
    const contexts = [...this.#contexts]
    this.#contexts.clear()
    for (const context of contexts) context._removeChild()
  }
}
