import { createHostCallback, type HostCallback } from '@shoal/ffi'

/** A function that C calls, until nothing has it any more. */
export interface SharedCallback {
  readonly callback: HostCallback
  users: number
}

/** A callback nobody uses yet. */
export function sharedCallback(fn: () => void): SharedCallback {
  return { callback: createHostCallback(fn), users: 0 }
}

/**
 * What the nodes of a graph need: objects that have to be there when it is launched, and functions that C calls. A graph
 * and the executable graphs made of it have each their own, of the same things.
 */
export class NodeResources {
  /** The objects, each with a check that throws once it is gone. */
  readonly #checks = new Map<object, () => void>()
  /** The same in a row, for the launches. */
  #list: readonly (() => void)[] | undefined
  readonly #callbacks = new Set<SharedCallback>()

  /** Adds what is needed from now on. */
  add(checks: ReadonlyMap<object, () => void>, callback?: SharedCallback): void {
    for (const [object, check] of checks) this.#checks.set(object, check)
    this.#list = undefined
    if (callback === undefined || this.#callbacks.has(callback)) return
    this.#callbacks.add(callback)
    callback.users += 1
  }

  /** Adds all that `other` has. */
  addAll(other: NodeResources): void {
    this.add(other.#checks)
    for (const callback of other.#callbacks) this.add(new Map(), callback)
  }

  /** @throws DisposedError when something is gone. */
  check(): void {
    const list = (this.#list ??= [...this.#checks.values()])
    for (let index = 0; index < list.length; index += 1) (list[index] as () => void)()
  }

  /** Lets go of everything. */
  release(): void {
    this.#checks.clear()
    this.#list = undefined
    for (const callback of this.#callbacks) {
      callback.users -= 1
      if (callback.users === 0) callback.callback.dispose()
    }
    this.#callbacks.clear()
  }
}
