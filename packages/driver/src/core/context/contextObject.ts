import { checkRelease } from '../errors.js'
import { forgetLeak, Resource, watchForLeak } from '../lifetime.js'
import { afterCapture } from './capturing.js'
import type { Context } from './context.js'
import type { ReleaseCall } from './releases.js'

/** The C function that takes a handle back. */
export interface Destroyer {
  readonly api: string
  readonly call: (handle: bigint) => number
  /** What is let go afterwards. */
  readonly after?: (() => void) | undefined
}

/**
 * An object of a context that work in flight may use without anybody's knowing: arrays, textures, surfaces, semaphores.
 * So its end waits for the work of the context.
 */
export abstract class ContextObject extends Resource {
  /** The context it was made in. */
  readonly context: Context
  readonly #handle: bigint
  readonly #destroyer: Destroyer | undefined
  #pressure = 0

  /**
   * Without a `destroyer` it is a part of another object, which ends with that.
   * @param byteLength memory of the device that it holds, more or less
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

  /** The device it is on. */
  get device(): Context['device'] {
    return this.context.device
  }

  /** @internal The handle for C. @throws DisposedError */
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
