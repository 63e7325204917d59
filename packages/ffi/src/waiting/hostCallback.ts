import { requireFunction, requireOneOf } from '@shoal/types'
import { addon, pending } from '../addon/load.js'

/** A JavaScript function that C code may call from any thread. */
export interface HostCallback {
  /** Address of the C function: `void (*)(void* userData)` or `void (*)(stream, status, void* userData)`. */
  readonly functionAddress: bigint
  /** Argument of the C function. */
  readonly userData: bigint
  /** Ends the callback: later calls from C do nothing. Idempotent. */
  dispose(): void
  /** For `JSON.stringify`, which refuses bigints. */
  toJSON(): string
}

// One shared function, because each host function of a stream makes a callback.
const describeCallback = (): string => 'HostCallback {}'

/**
 * Makes a function callable from native threads.
 *
 * It runs later on this JavaScript thread, in the order of the native calls, which do not wait for it. It runs in the
 * async context of this call (`AsyncLocalStorage`). It does not keep the process alive.
 * @param shape `host` for `CUhostFn`, `stream` for `CUstreamCallback`. `stream` passes the status, `host` passes 0.
 * @throws TypeError
 */
export function createHostCallback(fn: (status: number) => void, shape: 'host' | 'stream' = 'host'): HostCallback {
  requireFunction(fn, 'createHostCallback', 'fn')
  requireOneOf(shape, 'createHostCallback', 'shape', ['host', 'stream'])
  const native = addon()
  const id = native.registerCallback()
  // The callback uses the caller's `AsyncLocalStorage`, as a timer does.
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
