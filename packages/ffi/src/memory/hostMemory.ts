import { constants } from 'node:buffer'
import {
  isInstance,
  isView,
  type OwnedArrayOf,
  outOfRange,
  requireAddress,
  requireInteger,
  wrongType,
} from '@shoal/types'
import { addon, pending } from '../addon/load.js'

/** An `ArrayBuffer` over memory of another owner. */
export interface HostView {
  /** Reads and writes access the memory directly. */
  readonly buffer: ArrayBuffer
  /**
   * Makes the buffer zero bytes long, which ends access to the memory.
   *
   * Call it before the memory is freed. Returns false if the program moved the memory to another buffer
   * (`buffer.transfer()`): free it only after {@link HostViewReach.whenReleased} reports it.
   */
  detach(): boolean
  /** A separate object, so that holding it does not keep the buffer alive. */
  readonly reach: HostViewReach
}

/** Reports whether any buffer still reaches the memory of a view. */
export interface HostViewReach {
  /**
   * Calls `fn` when no buffer reaches the memory, possibly immediately.
   *
   * Not called if the JavaScript thread ends first.
   */
  whenReleased(fn: () => void): void
}

/**
 * Returns an `ArrayBuffer` over memory of another owner, such as pinned memory, without a copy.
 *
 * The owner keeps the memory alive until `detach()`.
 * @throws Error with code `SHOAL_NO_EXTERNAL_BUFFERS` in engines that forbid buffers over native memory.
 */
export function hostView(address: bigint, byteLength: number): HostView {
  requireNonNull(address, 'hostView')
  requireInteger(byteLength, 'hostView', 'byteLength', 0, constants.MAX_LENGTH)
  const native = addon()
  const id = native.registerCallback()
  const reach = watchReach(id)
  const buffer = native.view(address, byteLength, id)
  return {
    buffer,
    reach,
    detach() {
      const isWhole = buffer.byteLength === byteLength
      native.detach(buffer)
      return isWhole
    },
  }
}

function requireNonNull(address: bigint, api: string): void {
  if (requireAddress(address, api, 'address') === 0n) throw outOfRange(api, 'address', 'an address other than 0', 0n)
}

function watchReach(id: number): HostViewReach {
  let waiting: (() => void)[] | undefined = []
  pending.callbacks.set(id, () => {
    pending.callbacks.delete(id)
    addon().unregisterCallback(id)
    const calls = waiting ?? []
    waiting = undefined
    for (const call of calls) call()
  })
  return {
    whenReleased(fn) {
      if (waiting === undefined) fn()
      else waiting.push(fn)
    },
  }
}

/**
 * Returns the address of a view's first byte.
 *
 * It stays valid while the view is reachable and its buffer is neither detached nor resized.
 */
export function addressOf(view: ArrayBufferView | ArrayBufferLike): bigint {
  if (!isInstance(view, ArrayBuffer) && !isView(view))
    throw wrongType('addressOf', 'view', 'a view or an ArrayBuffer', view)
  return addon().addressOf(view)
}

/** Reads NUL-terminated UTF-8 text at an address; `null` for a null pointer. */
export function readCString(address: bigint): string | null {
  return addon().readCString(requireAddress(address, 'readCString', 'address'))
}

/** Decodes a fixed-size C text field as UTF-8, up to its NUL or its end. */
export function textIn(bytes: Uint8Array): string {
  if (!isInstance(bytes, Uint8Array)) throw wrongType('textIn', 'bytes', 'a Uint8Array', bytes)
  const end = bytes.indexOf(0)
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end))
}

/** Copies `byteLength` bytes of native memory. The address must be readable host memory. */
export function readMemory(address: bigint, byteLength: number): OwnedArrayOf<'u8'> {
  requireNonNull(address, 'readMemory')
  requireInteger(byteLength, 'readMemory', 'byteLength', 0, constants.MAX_LENGTH)
  const bytes = new Uint8Array(byteLength)
  if (byteLength > 0) addon().copyOut(address, bytes)
  return bytes
}
