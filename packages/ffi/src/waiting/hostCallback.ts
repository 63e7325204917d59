import { requireFunction, requireOneOf } from '@shoal/types'
import { addon, pending } from '../addon/load.js'

/** A JavaScript function that C code may call from any thread. */
export interface HostCallback {
  /** Address of the C function: `void (*)(void* userData)` or `void (*)(stream, status, void* userData)`. */
  readonly functionAddress: bigint
  /** What C must hand back. */
  readonly userData: bigint
  /** C may still call after this; nothing happens then. Idempotent. */
  dispose(): void
  /** For `JSON.stringify`, which refuses the addresses. */
  toJSON(): string
}

// One function for all: a callback is made for each host function of a stream.
const describeCallback = (): string => 'HostCallback {}'

/**
 * Makes a function callable from native threads. It runs later on this JavaScript thread, in the order of the calls;
 * the native thread does not wait for it. It runs in the async context of this call (`AsyncLocalStorage`). Does not
 * keep the process alive.
 * @param shape `host` for `CUhostFn`, `stream` for `CUstreamCallback`; the latter gives the status, the former 0.
 * @throws TypeError
 */
export function createHostCallback(fn: (status: number) => void, shape: 'host' | 'stream' = 'host'): HostCallback {
  requireFunction(fn, 'createHostCallback', 'fn')
  requireOneOf(shape, 'createHostCallback', 'shape', ['host', 'stream'])
  const native = addon()
  const id = native.registerCallback()
  // Its `AsyncLocalStorage` is that of whoever passed it, as with a timer.
  const { AsyncResource } = process.getBuiltinModule('node:async_hooks')
  pending.callbacks.set(id, AsyncResource.bind(fn))
  return {
    functionAddress: shape === 'host' ? native.hostFunctionAddress : native.streamCallbackAddress,
    userData: BigInt(id),
    dispose() {
      if (pending.callbacks.delete(id)) native.unregisterCallback(id)
    },
    toJSON: describeCallback,
  }
}
