import { type NativeMemory, setContextFunctions } from '@shoal/ffi'
import { putHandle, putI32, putPointer } from '@shoal/ffi/calls'
import { stub } from '../fixtures/stub.js'

/** The library of the tests, and some of its functions. */
export const library = stub()
const one = (name: string, put: (value: never) => void) => {
  const call = library.bind(name, 0, 1)
  return (value: unknown): number => {
    put(value as never)
    return call()
  }
}
export const sleepMs = one('sleep_ms', (value) => putI32(0, value, 'sleep_ms', 'ms'))
export const sleepUs = one('sleep_us', (value) => putI32(0, value, 'sleep_us', 'us'))
export const failWith = one('fail_with', (value) => putI32(0, value, 'fail_with', 'code'))
export const waitUntilSet = (flag: NativeMemory): number => {
  const call = library.bind('wait_until_set', 0, 2)
  putPointer(0, flag, 'wait_until_set', 'flag')
  putI32(1, 600_000, 'wait_until_set', 'ms')
  return call()
}
export const storeThread = one('store_thread', (value) => putPointer(0, value, 'store_thread', 'out'))
export const forceCurrent = one('force_current', (value) => putHandle(0, value, 'force_current', 'context'))
export const storeCurrent = one('store_current', (value) => putPointer(0, value, 'store_current', 'out'))
setContextFunctions(library.address('get_current'), library.address('set_current'))
