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

/** First version that had per-thread default streams: no per-thread variant can be asked for below it. */
const firstPerThreadVersion = 7000

// CUdriverProcAddress_flags and CUdriverProcAddressQueryResult; not from the generated enumerations, which import
// nothing from here but would be loaded by everyone who only wants the library.
const legacyStream = 1
const perThreadStream = 2
const versionNotSufficient = 2

interface EntryPoint {
  readonly call: NativeCall
  readonly cells: BigUint64Array
}

let entryPoint: EntryPoint | null | undefined

/** Version of the driver, e.g. 13000. Undefined if the driver does not tell it (`cuDriverGetVersion`). */
const driverVersion = versionReader('cuDriverGetVersion', 1, 'cuda')

/** `cuGetProcAddress_v2`, which came with CUDA 12.0; `null` where the driver is older. */
function procAddress(library: NativeLibrary): EntryPoint | null {
  if (entryPoint !== undefined) return entryPoint
  const address = library.rawSymbol('cuGetProcAddress_v2')
  entryPoint =
    address === undefined
      ? null
      : { call: bindCall(address, 5, 'i32', 'cuGetProcAddress_v2'), cells: new BigUint64Array(2) }
  return entryPoint
}

/** The symbol that the library exports for one ABI of a function. */
function exportedSymbol(library: NativeLibrary, symbol: string, since: number): bigint | undefined {
  const key = `${symbol}@${since}`
  const suffix = streamMode() === 'per-thread' ? (perThreadSuffixes()[key] ?? '') : ''
  return library.rawSymbol(`${versionedSymbols()[key] ?? symbol}${suffix}`)
}

/**
 * Address of a driver function at the version whose signature is known. Asking for "the newest" could return another
 * ABI than the one that was generated; so does asking for a version above the driver's, and that is refused here.
 */
function resolve(library: NativeLibrary, symbol: string, since: number): bigint | undefined {
  if (since === 0) return library.rawSymbol(symbol)
  const query = procAddress(library)
  const installed = driverVersion(library)
  if (installed !== undefined && since > installed) return undefined
  if (query === null || installed === undefined) return exportedSymbol(library, symbol, since)
  // Asked with the flag of per-thread mode for an ABI older than its function's first variant, the driver finds
  // nothing.
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
  // The driver is new enough and knows the name, but only with a signature of later than the one that was asked for: a
  // newer driver is no help, and what it has must not be called.
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

/** libcuda, the CUDA driver's user-mode library. Nothing is loaded before the first call. */
export const driver: NativeLibrary = defineLibrary({
  ...places,
  resolve,
  versionOf: driverVersion,
})
