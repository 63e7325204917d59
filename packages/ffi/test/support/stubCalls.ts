import { type NativeMemory, type Parameter, setContextFunctions } from '@shoal/ffi'
import { stub } from '../fixtures/stub.js'

/** The tests' library, and some of its functions. */
export const library = stub()
const one = <const K extends Parameter>(name: string, parameter: K) =>
  library.function(name, { parameters: [parameter], result: 'i32' })
export const sleepMs = one('sleep_ms', 'ms: i32')
export const sleepUs = one('sleep_us', 'us: i32')
export const failWith = one('fail_with', 'code: i32')
const waitFor = library.function('wait_until_set', { parameters: ['flag: ptr', 'ms: i32'], result: 'i32' })
export const waitUntilSet = (flag: NativeMemory): number => waitFor(flag, 600_000)
export const storeThread = one('store_thread', 'out: ptr')
export const forceCurrent = one('force_current', 'context: u64')
export const storeCurrent = one('store_current', 'out: ptr')
setContextFunctions(library.address('get_current'), library.address('set_current'))
