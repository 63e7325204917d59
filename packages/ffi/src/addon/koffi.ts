import { FeatureNotSupportedError } from '@shoal/types'

export type Koffi = typeof import('koffi')

/**
 * Loads the optional package koffi, which programs install only if they need it.
 *
 * @param api the function that needs it
 * @throws FeatureNotSupportedError if it is not installed
 */
export function loadKoffi(api: string): Koffi {
  try {
    return process.getBuiltinModule('node:module').createRequire(import.meta.url)('koffi') as Koffi
  } catch (cause) {
    const reason = 'the package koffi is missing or does not load: npm install koffi@^3.3.4, or use the addon'
    throw new FeatureNotSupportedError({ library: '@shoal/ffi', api, reason, cause })
  }
}
