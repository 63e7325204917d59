import { FeatureNotSupportedError } from '@shoal/types'

export type Koffi = typeof import('koffi')

/**
 * The package koffi, which a program installs itself where it needs it; most never do.
 * @param api what needs it. @throws FeatureNotSupportedError where it is not installed.
 */
export function loadKoffi(api: string): Koffi {
  try {
    return process.getBuiltinModule('node:module').createRequire(import.meta.url)('koffi') as Koffi
  } catch (cause) {
    const reason = 'the package koffi is not there or does not load: npm install koffi@^3.3.4, or use the addon'
    throw new FeatureNotSupportedError({ library: '@shoal/ffi', api, reason, cause })
  }
}
