import { defineLibrary, type NativeLibrary } from '@shoal/ffi'
import { bindCall, nestedCall, putPointer } from '@shoal/ffi/calls'
import { streamMode } from '@shoal/types'
import { generatedVersion, otherMajors, perThreadSymbols, versionMarkers } from './generated/lookup.gen.js'
import { places } from './generated/places.gen.js'
import { signatureError } from './signature.js'

let installedVersion: number | undefined

/**
 * Returns the version of libcudart, such as 13000, from `cudaRuntimeGetVersion`. Up to CUDA 11 that function fails
 * without a driver. Then returns the version of the library's newest functions; `undefined` if it has none since 11.0.
 */
function runtimeVersion(library: NativeLibrary): number | undefined {
  if (installedVersion !== undefined) return installedVersion
  const address = library.rawSymbol('cudaRuntimeGetVersion')
  if (address === undefined) return undefined
  const cell = new Int32Array(1)
  const status = nestedCall(
    () => putPointer(0, cell, 'cudaRuntimeGetVersion', 'runtimeVersion'),
    bindCall(address, 1, 'i32', 'cudaRuntimeGetVersion'),
  )
  installedVersion =
    status === 0 ? cell[0] : versionMarkers.find(([, symbol]) => library.rawSymbol(symbol) !== undefined)?.[0]
  return installedVersion
}

/** Throws if a function's signature in the loaded major version differs from the generated one. */
function requireSameSignature(library: NativeLibrary, symbol: string, since: number): void {
  const majors = otherMajors[symbol]
  if (majors === undefined) return
  const installed = runtimeVersion(library)
  if (installed === undefined) return
  const error = signatureError({
    library: library.title,
    symbol,
    since,
    generated: generatedVersion,
    installed,
    otherMajors: majors,
  })
  if (error !== undefined) throw error
}

function resolve(library: NativeLibrary, symbol: string, since: number): bigint | undefined {
  requireSameSignature(library, symbol, since)
  const variant = streamMode() === 'per-thread' ? perThreadSymbols[symbol] : undefined
  return library.rawSymbol(variant ?? symbol)
}

/** The CUDA runtime libcudart, loaded at the first call. */
export const runtime: NativeLibrary = defineLibrary({
  ...places,
  resolve,
  versionOf: runtimeVersion,
})
