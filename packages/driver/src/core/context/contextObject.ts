import { checkRelease } from '../errors.js'
import { forgetLeak, Resource, watchForLeak } from '../lifetime.js'
import { afterCapture } from './capturing.js'
import type { Context } from './context.js'
import type { ReleaseCall } from './releases.js'

/** The C function that destroys a handle. */
export interface Destroyer {
  readonly api: string
  readonly call: (handle: bigint) => number
  /** Called after the destruction. */
  readonly after?: (() => void) | undefined
}

/**
 * An object that work in flight may use without Shoal's knowledge: arrays, textures, surfaces, semaphores. Its
 * destruction waits for the context's work.
 */
export abstract class ContextObject extends Resource {
  /** The context of the object. */
  readonly context: Context
  readonly #handle: bigint
  readonly #destroyer: Destroyer | undefined
  #pressure = 0

  /**
   * Without a `destroyer`, the object is a part of another object and ends with it.
   * @param byteLength approximate device memory of the object
   */
  constructor(context: Context, handle: bigint, what: string, destroyer: Destroyer | undefined, byteLength = 0) {
    super()
    this.context = context
    this.#handle = handle
    this.#destroyer = destroyer
    if (destroyer === undefined) return
    context._addChild()
    this.#pressure = context._pressureOf(byteLength)
    const reclaim = (): string => {
      if (context.disposed) return 'it went with its context'
      endLate(what, context, handle, destroyer)
      return 'it is freed when the work of its context has ended'
    }
    watchForLeak(this, what, reclaim, 'dispose()', this.#pressure)
  }

  /** The device of the object. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** @internal Returns the handle for a C call. @throws DisposedError */
  _use(): bigint {
    this._requireAlive()
    this.context._requireAlive()
    return this.#handle
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal }
  }

  protected release(): void {
    if (this.#destroyer === undefined) return
    forgetLeak(this, this.#pressure)
    const [handle, destroyer] = [this.#handle, this.#destroyer]
    afterCapture(this.kind, () => endLate(this.kind, this.context, handle, destroyer))
  }
}

function endLate(what: string, context: Context, handle: bigint, { api, call, after }: Destroyer): void {
  const destroy: ReleaseCall = { make: () => call(handle), check: (status) => checkRelease(status, api) }
  context._releases.add(what, [context._releaseCall('ctxSynchronize'), destroy], () => {
    try {
      after?.()
    } finally {
      context._removeChild()
    }
  })
}
