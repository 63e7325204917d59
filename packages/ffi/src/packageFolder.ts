import { createRequire } from 'node:module'
import { dirname } from 'node:path'

/** Folder of this package, wherever a bundler puts the code. */
export function packageFolder(): string {
  return dirname(createRequire(import.meta.url).resolve('@shoal/ffi/package.json'))
}
