import { defineLibrary, type NativeLibrary } from '@shoal/ffi'
import {
  bindCall,
  type NativeCall,
  nestedCall,
  putCString,
  putI32,
  putPointer,
  putSize,
  versionReader,
} from '@shoal/ffi/calls'
import { formatCudaVersion, SymbolNotFoundError, streamMode } from '@shoal/types'
import { perThreadSuffixes, versionedSymbols } from './generated/lookup.gen.js'
import { places } from './generated/places.gen.js'

/** First version with per-thread default streams. Older versions have no per-thread variants of functions. */
const firstPerThreadVersion = 7000

// CUdriverProcAddress_flags and CUdriverProcAddressQueryResult. Not imported from the generated enumerations, because
// every user of the library would then load these.
const legacyStream = 1
const perThreadStream = 2
const versionNotSufficient = 2

interface EntryPoint {
  readonly call: NativeCall
  readonly cells: BigUint64Array
}

let entryPoint: EntryPoint | null | undefined

/** Version of the driver, such as 13000; undefined if the driver does not report it (`cuDriverGetVersion`). */
const driverVersion = versionReader('cuDriverGetVersion', 1, 'cuda')

/** Returns `cuGetProcAddress_v2` of CUDA 12.0; `null` for an older driver. */
function procAddress(library: NativeLibrary): EntryPoint | null {
  if (entryPoint !== undefined) return entryPoint
  const address = library.rawSymbol('cuGetProcAddress_v2')
  entryPoint =
    address === undefined
      ? null
      : { call: bindCall(address, 5, 'i32', 'cuGetProcAddress_v2'), cells: new BigUint64Array(2) }
  return entryPoint
}

/** Returns the symbol that the library exports for one ABI of a function. */
function exportedSymbol(library: NativeLibrary, symbol: string, since: number): bigint | undefined {
  const key = `${symbol}@${since}`
  const suffix = streamMode() === 'per-thread' ? (perThreadSuffixes()[key] ?? '') : ''
  return library.rawSymbol(`${versionedSymbols()[key] ?? symbol}${suffix}`)
}

/**
 * Returns a driver function's address at the version with the known signature. Requesting the newest version, or one
 * above the driver's, could return a different ABI; the latter is refused here.
 */
function resolve(library: NativeLibrary, symbol: string, since: number): bigint | undefined {
  if (since === 0) return library.rawSymbol(symbol)
  const query = procAddress(library)
  const installed = driverVersion(library)
  if (installed !== undefined && since > installed) return undefined
  if (query === null || installed === undefined) return exportedSymbol(library, symbol, since)
  // With the per-thread flag, the driver finds no function for an ABI older than the function's first variant.
  const perThread = streamMode() === 'per-thread' && perThreadSuffixes()[`${symbol}@${since}`] !== undefined
  const version = perThread ? Math.max(since, firstPerThreadVersion) : since
  const { call, cells } = query
  cells.fill(0n)
  const status = nestedCall(() => {
    putCString(0, symbol, 'cuGetProcAddress', 'symbol')
    putPointer(1, cells.subarray(0, 1), 'cuGetProcAddress', 'pfn')
    putI32(2, version, 'cuGetProcAddress', 'cudaVersion')
    putSize(3, perThread ? perThreadStream : legacyStream, 'cuGetProcAddress', 'flags')
    putPointer(4, cells.subarray(1, 2), 'cuGetProcAddress', 'symbolStatus')
  }, call)
  const [address = 0n, symbolStatus = 0n] = cells
  if (status === 0 && address !== 0n) return address
  // The driver is new enough and knows the name, but only with a signature later than the requested one. A newer driver
  // would not help, and this function must not be called.
  if (Number(symbolStatus & 0xffff_ffffn) === versionNotSufficient) {
    throw new SymbolNotFoundError({
      library: library.title,
      symbol,
      path: library.load().path,
      installed: formatCudaVersion(installed),
      signatureOf: formatCudaVersion(since),
    })
  }
  return undefined
}

/** The CUDA driver's user-mode library libcuda, loaded at the first call. */
export const driver: NativeLibrary = defineLibrary({
  ...places,
  resolve,
  versionOf: driverVersion,
})
