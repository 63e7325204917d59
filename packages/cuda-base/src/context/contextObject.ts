import {
  afterCapture,
  type Context,
  checkRelease,
  forgetLeak,
  processIsEnding,
  Resource,
  warnOnReject,
  watchForLeak,
} from '@shoal/cuda-base'
import { callInContext } from '@shoal/ffi'
import { doneNow } from '@shoal/types'

/** The C function that takes a handle back. */
export interface Destroyer {
  readonly api: string
  readonly call: (handle: bigint) => number
  /** What is let go afterwards. */
  readonly after?: (() => void) | undefined
}

/**
 * An object of a context that work in flight may use without anybody's knowing: arrays, textures, surfaces, semaphores. So its end
 * waits for the work of the context.
 */
export abstract class ContextObject extends Resource {
  /** The context it was made in. */
  readonly context: Context
  readonly #handle: bigint
  readonly #destroyer: Destroyer | undefined

  /** Without a `destroyer` it is a part of another object, which ends with that. */
  constructor(context: Context, handle: bigint, what: string, destroyer: Destroyer | undefined) {
    super()
    this.context = context
    this.#handle = handle
    this.#destroyer = destroyer
    if (destroyer === undefined) return
    context._addChild()
    watchForLeak(this, what, () => {
      if (context.disposed) return 'it went with its context'
      const freed = context.synchronize().finally(() => endOf(context, handle, destroyer))
      warnOnReject(what, freed)
      return 'it is freed when the work of its context has ended'
    })
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

  /** Waits for the work of the context without blocking the thread, then releases what this object holds. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.disposed && !this.context.disposed && this.#destroyer !== undefined) await this.context.synchronize()
    this.dispose()
    await doneNow()
  }

  protected override inspectFacts(): { readonly [fact: string]: unknown } {
    return { device: this.context.device.ordinal }
  }

  protected release(): void {
    if (this.#destroyer === undefined) return
    forgetLeak(this)
    const destroyer = this.#destroyer
    afterCapture(this.kind, () => {
      try {
        this.context._release('ctxSynchronize')
      } finally {
        endOf(this.context, this.#handle, destroyer)
      }
    })
  }
}

function endOf(context: Context, handle: bigint, { api, call, after }: Destroyer): void {
  try {
    if (context.disposed || processIsEnding()) return
    callInContext(context._handle)
    checkRelease(call(handle), api)
  } finally {
    after?.()
    context._removeChild()
  }
}
