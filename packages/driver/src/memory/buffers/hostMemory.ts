import { constants } from 'node:buffer'
import { type HostView, hostView } from '@shoal/ffi'
import { type ElementType, outOfRange } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { type HostArrayOf, storageOf } from './elementType.js'

/** @throws RangeError for more bytes than an `ArrayBuffer` can have */
export function requireViewable(byteLength: number, api: string): void {
  if (byteLength <= constants.MAX_LENGTH) return
  throw outOfRange(api, 'length', `of at most ${constants.MAX_LENGTH} bytes, the limit of an ArrayBuffer`, byteLength)
}

/** Host memory of a context as a typed array: what page-locked and managed memory have in common. */
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
    // Resetting the device frees the memory: no array may look into it after that.
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

  /** What has to be called when nothing looks into the memory any more; holds neither this object nor the array. */
  get releaser(): (free: () => void) => void {
    const { reach } = this.#view
    const forget = this.#forget
    return (free) => {
      forget()
      reach.whenReleased(free)
    }
  }

  /**
   * Empties the array, then calls `free`; later, where `buffer.transfer()` gave the memory to an array still in use.
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

/** A moved buffer is out of reach: until it is collected, resetting the device would take memory away that is read. */
function watchMoved(context: Context, { buffer, reach }: HostView): () => void {
  const { byteLength } = buffer
  const original = new WeakRef(buffer)
  const forget = context._watchMovedMemory(() => original.deref()?.byteLength !== byteLength)
  reach.whenReleased(forget)
  return forget
}
