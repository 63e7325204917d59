// Resolves the functions of the spec in the library, in the same way as the generated functions. A process can test
// only one stream mode.
import type { NativeLibrary } from '@shoal/ffi'
import { FeatureNotSupportedError, SymbolNotFoundError, VersionTooNewError, VersionTooOldError } from '@shoal/types'
import type { Spec } from './spec.js'

export type ResolveOutcome = 'resolved' | 'gated' | 'missing'

export interface Resolution {
  readonly name: string
  readonly outcome: ResolveOutcome
  /** why the function is gated or missing */
  readonly reason?: string
  /** missing, and the spec does not say why */
  readonly unexplained?: true
  /** resolved, and the loader has the same address for the exported name */
  readonly isExport?: boolean
}

/** Resolves every function of a library, which this loads. */
export function resolveAll(spec: Spec, library: NativeLibrary, mode: 'legacy' | 'per-thread'): Resolution[] {
  return [...spec.functions.values()].map(({ name, lookup, since, symbol, perThreadSymbol, platform, reason }) => {
    const gated = (text: string): Resolution => ({ name, outcome: 'gated', reason: text })
    if (platform !== undefined && platform !== process.platform) return gated(`only on ${platform}`)
    try {
      const address = library.address(lookup, since)
      const exported = mode === 'per-thread' ? (perThreadSymbol ?? symbol) : symbol
      return { name, outcome: 'resolved' as const, isExport: library.rawSymbol(exported) === address }
    } catch (error) {
      if (error instanceof VersionTooOldError && isNewer(error.since, error.installed))
        return gated(`since ${error.since}, installed ${error.installed}`)
      if (error instanceof VersionTooNewError || error instanceof FeatureNotSupportedError) return gated(error.message)
      if (!(error instanceof SymbolNotFoundError || error instanceof VersionTooOldError)) throw error
      return reason === undefined
        ? { name, outcome: 'missing' as const, reason: error.message, unexplained: true as const }
        : { name, outcome: 'missing' as const, reason }
    }
  })
}

/** Is true if the first version text is newer than the second, as in `12.8` and `12.4`. */
function isNewer(one: string, other: string): boolean {
  const [a, b] = [one.split('.').map(Number), other.split('.').map(Number)]
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return false
}
