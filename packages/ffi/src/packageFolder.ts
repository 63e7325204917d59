import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Defined when a bundler has made this a CommonJS module. */
declare const __filename: string | undefined

/**
 * Returns files from which to resolve the program's packages: this file, its bundle, the program's main file.
 *
 * Bundlers replace `import.meta.url`: with nothing in CommonJS, else with the path at build time.
 */
export function codePlaces(): string[] {
  const bundle = typeof __filename === 'string' ? __filename : undefined
  // With --eval and --print the first argument is not the program's file.
  const isFile = !process.execArgv.some((argument) => /^(-[ep]|-pe|--eval|--print)\b/.test(argument))
  const places: unknown[] = [import.meta.url, bundle, isFile ? process.argv[1] : undefined]
  return places.filter((place) => typeof place === 'string' && /^(?:file:|\/|[A-Z]:)/i.test(place)) as string[]
}

/**
 * Returns the folder of this package, even in a bundle.
 *
 * @throws Error if no place of the code resolves the package
 */
export function packageFolder(): string {
  let failure: unknown = new Error("Cannot find module '@shoal/ffi/package.json'")
  for (const place of codePlaces()) {
    try {
      return dirname(process.getBuiltinModule('node:module').createRequire(place).resolve('@shoal/ffi/package.json'))
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/** Returns files of a name next to the code, where bundles keep native files. */
export function besideCode(name: string): string[] {
  const folders = codePlaces().map((place) => dirname(place.startsWith('file:') ? fileURLToPath(place) : place))
  return [...new Set(folders)].map((folder) => join(folder, name)).filter((file) => existsSync(file))
}
