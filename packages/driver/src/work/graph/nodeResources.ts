import { DisposedError, isInstance } from '@shoal/types'
import type { CaptureNeeds, GraphUse } from '../../core/context/capturing.js'
import type { Context } from '../../core/context/context.js'
import type { Stream } from '../../core/stream/stream.js'
import type { Block } from '../../memory/buffers/caching/block.js'
import { DeviceBuffer } from '../../memory/buffers/deviceBuffer.js'
import type { NodeDescription } from './nodeDescription.js'

/**
 * What the nodes of a graph need: objects that have to be there when it is launched, functions that C calls, and the
 * contexts, also those of graphs that are parts of it, which stay until it ends. A graph and the executable graphs made
 * of it have each their own, of the same things.
 */
export class NodeResources implements CaptureNeeds {
  /** The objects, each with a check that throws once it is gone. */
  readonly #checks = new Map<object, () => void>()
  /** The same in a row, for the launches. */
  #list: readonly (() => void)[] | undefined
  /** Memory of caching pools among the objects, as of {@link #list}. */
  #blocks: readonly Block[] = []
  /** Objects that are kept alive and may be disposed of. */
  readonly #held = new Set<object>()
  /** Functions that C calls, and objects that count their graphs. */
  readonly #uses = new Set<GraphUse>()
  /** What the last node needed, where that was one thing: so mostly does the next. */
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

  /** Adds what a node needs. */
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

  /** Takes over the objects of `other` in place of its own. Functions stay: launches under way may still call them. */
  replaceBy(other: NodeResources): void {
    this.#checks.clear()
    this.#held.clear()
    this.#lastSole = undefined
    this.#list = undefined
    this.addAll(other)
  }

  /** Adds all that `other` has. */
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

  /** @throws DisposedError when something is gone, which says before what. */
  check(operation: string): void {
    const list = this.#list ?? this.#makeList()
    try {
      for (let index = 0; index < list.length; index += 1) (list[index] as () => void)()
    } catch (cause) {
      // Memory that other memory looks into became shorter.
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

  /** Whether memory of caching pools is among the objects. They were checked. */
  get hasBlocks(): boolean {
    return this.#blocks.length > 0
  }

  /** Tells caching pools that work of a stream uses their memory. */
  recordUse(stream: Stream): void {
    for (const block of this.#blocks) block.owner.addUser(block, stream)
  }

  /** Lets go of everything, once the graph is destroyed. */
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
