import {
  type CUuserObject,
  cuGraphReleaseUserObject,
  cuGraphRetainUserObject,
  cuUserObjectCreate,
  cuUserObjectRelease,
} from '@shoal/cuda-sys/driver'
import { createHostCallback } from '@shoal/ffi'
import { loadedFrom, requireFunction, requireInstance, requireInteger, requireMade } from '@shoal/types'
import { driverLibrary } from '../../core/calls/driverLibrary.js'
import { check } from '../../core/errors.js'
import { forgetLeak, Resource, watchForLeak } from '../../core/lifetime.js'
import { scratch } from '../../core/native.js'
import { Graph } from './graph.js'

const noDestructorSync = 1
const mostReferences = 2 ** 31 - 1

/**
 * Something whose end the driver tells (`CUuserObject`): `fn` is called once when this object was disposed of and no
 * graph, none of its clones and no executable graph with its work has it any more; {@link retainBy} gives it to a
 * graph.
 *
 * @example
 * using weights = UserObject.create(() => pool.put(buffer))
 * weights.retainBy(graph)
 */
export class UserObject extends Resource {
  /** @internal */
  static override get [loadedFrom](): string {
    return import.meta.url
  }
  protected readonly kind = 'UserObject'
  readonly #handle: CUuserObject

  private constructor(handle: CUuserObject) {
    requireMade(handle, 'UserObject', 'UserObject.create')
    super()
    this.#handle = handle
    watchForLeak(this, 'A UserObject', () => {
      letGo(handle)
      return 'graphs that retain it still have it'
    })
  }

  /**
   * Makes one (`cuUserObjectCreate`).
   * @param fn is called later on this thread, which it does not keep alive: at the end of a process it may not be
   * called.
   * @throws TypeError, StatusError
   */
  static create(fn: () => void): UserObject {
    requireFunction(fn, 'UserObject.create', 'fn')
    driverLibrary.start()
    const callback = createHostCallback(() => {
      callback.dispose()
      fn()
    })
    const out = scratch()
    try {
      const { functionAddress, userData } = callback
      check(cuUserObjectCreate(out, userData, functionAddress, 1, noDestructorSync), 'cuUserObjectCreate')
    } catch (error) {
      callback.dispose()
      throw error
    }
    return new UserObject(out.u64[0] as CUuserObject)
  }

  /** The `CUuserObject`. @throws DisposedError */
  get handle(): CUuserObject {
    this._requireAlive()
    return this.#handle
  }

  /**
   * The graph has it from now on, as have its clones and what is made of it (`cuGraphRetainUserObject`).
   * @param count how often: as often it has to let go of it, by {@link releaseBy} or by its end.
   * @throws TypeError, RangeError, DisposedError, StatusError
   */
  retainBy(graph: Graph, count = 1): this {
    const api = 'UserObject.retainBy'
    requireInstance(graph, api, 'graph', Graph)
    const times = requireInteger(count, api, 'count', 1, mostReferences)
    check(cuGraphRetainUserObject(graph.handle, this.handle, times, 0), 'cuGraphRetainUserObject')
    return this
  }

  /**
   * Takes back what {@link retainBy} gave (`cuGraphReleaseUserObject`). @throws as that; StatusError for more than it
   * gave
   */
  releaseBy(graph: Graph, count = 1): this {
    const api = 'UserObject.releaseBy'
    requireInstance(graph, api, 'graph', Graph)
    const times = requireInteger(count, api, 'count', 1, mostReferences)
    check(cuGraphReleaseUserObject(graph.handle, this.handle, times), 'cuGraphReleaseUserObject')
    return this
  }

  /** Lets go of it (`cuUserObjectRelease`): graphs that retain it still have it. */
  protected release(): void {
    forgetLeak(this)
    letGo(this.#handle)
  }
}

function letGo(handle: CUuserObject): void {
  check(cuUserObjectRelease(handle, 1), 'cuUserObjectRelease')
}
