import { createRequire } from 'node:module'

/** Returns the version of this package. */
export function shoalVersion(): string {
  const about = createRequire(import.meta.url)('@shoal/cli/package.json') as { readonly version: string }
  return about.version
}
