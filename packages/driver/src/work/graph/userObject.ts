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
 * An object whose end the driver reports (`CUuserObject`). {@link retainBy} lets a graph retain the object.
 *
 * The driver calls `fn` once: after this object was disposed of, and no graph, clone or executable graph retains it any
 * more.
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
   * Creates a user object (`cuUserObjectCreate`).
   * @param fn called later on this thread; it does not keep the thread alive, so it may not be called at the end of the
   * process
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
   * Lets a graph, its clones and its executable graphs retain the object (`cuGraphRetainUserObject`).
   * @param count number of references; the graph releases them by {@link releaseBy} or when it ends
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
   * Releases references of {@link retainBy} (`cuGraphReleaseUserObject`). @throws as {@link retainBy}; StatusError for
   * more references than the graph has
   */
  releaseBy(graph: Graph, count = 1): this {
    const api = 'UserObject.releaseBy'
    requireInstance(graph, api, 'graph', Graph)
    const times = requireInteger(count, api, 'count', 1, mostReferences)
    check(cuGraphReleaseUserObject(graph.handle, this.handle, times), 'cuGraphReleaseUserObject')
    return this
  }

  /** Releases this reference (`cuUserObjectRelease`). Graphs that retain the object keep it. */
  protected release(): void {
    forgetLeak(this)
    letGo(this.#handle)
  }
}

function letGo(handle: CUuserObject): void {
  check(cuUserObjectRelease(handle, 1), 'cuUserObjectRelease')
}
