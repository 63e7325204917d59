import { constants } from 'node:buffer'
import { type HostView, hostView } from '@shoal/ffi'
import { type ElementType, outOfRange } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { type HostArrayOf, storageOf } from './elementType.js'

/** Checks that an `ArrayBuffer` can hold the bytes. @throws RangeError for more */
export function requireViewable(byteLength: number, api: string): void {
  if (byteLength <= constants.MAX_LENGTH) return
  throw outOfRange(api, 'length', `of at most ${constants.MAX_LENGTH} bytes, the limit of an ArrayBuffer`, byteLength)
}

/** Host memory of a context as a typed array, for page-locked and managed memory. */
export class ContextArray<E extends ElementType> {
  readonly array: HostArrayOf<E>
  readonly #view: HostView
  readonly #forget: () => void
  readonly #forgetMoved: () => void

  constructor(context: Context, address: bigint, byteLength: number, dtype: E, length: number) {
    const view = hostView(address, byteLength)
    const { typedArray, arrayEntries } = storageOf(dtype)
    this.#view = view
    this.array = new typedArray(view.buffer, 0, length * arrayEntries) as HostArrayOf<E>
    // A device reset frees the memory, so the reset must detach the array.
    const weak = new WeakRef(view)
    this.#forget = context._beforeClose((reason) => {
      if (reason !== 'thread-end') weak.deref()?.detach()
    })
    this.#forgetMoved = watchMoved(context, view)
  }

  /** The memory as an `ArrayBuffer`. */
  get buffer(): ArrayBuffer {
    return this.#view.buffer
  }

  /**
   * Returns a function that calls `free` when no array uses the memory any more. The function keeps neither this object
   * nor the array alive.
   */
  get releaser(): (free: () => void) => void {
    const { reach } = this.#view
    const forget = this.#forget
    return (free) => {
      forget()
      reach.whenReleased(free)
    }
  }

  /**
   * Detaches the array, then calls `free`. If `buffer.transfer()` moved the memory to an array in use, calls `free`
   * later.
   */
  detach(): { readonly isReachable: boolean; whenUnreachable(free: () => void): void } {
    this.#forget()
    const isReachable = !this.#view.detach()
    if (!isReachable) this.#forgetMoved()
    return {
      isReachable,
      whenUnreachable: (free) => (isReachable ? this.#view.reach.whenReleased(free) : free()),
    }
  }
}

/**
 * Prevents a reset of the device while a moved buffer is readable, because the reset would free its memory. The moved
 * buffer cannot be detached here; its collection ends the watch.
 */
function watchMoved(context: Context, { buffer, reach }: HostView): () => void {
  const { byteLength } = buffer
  const original = new WeakRef(buffer)
  const forget = context._watchMovedMemory(() => original.deref()?.byteLength !== byteLength)
  reach.whenReleased(forget)
  return forget
}
