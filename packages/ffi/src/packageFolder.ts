import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What a bundler leaves of a CommonJS module's own name. */
declare const __filename: string | undefined

/**
 * Files from which the packages of the program are in sight: this one, the bundle that it has become a part of, the
 * program's main file. Bundlers put other things in the place of `import.meta.url`: nothing in CommonJS, the path at
 * the time of building.
 */
export function codePlaces(): string[] {
  const bundle = typeof __filename === 'string' ? __filename : undefined
  // With --eval and --print the first argument is not the program but the program's.
  const isFile = !process.execArgv.some((argument) => /^(-[ep]|-pe|--eval|--print)\b/.test(argument))
  const places: unknown[] = [import.meta.url, bundle, isFile ? process.argv[1] : undefined]
  return places.filter((place) => typeof place === 'string' && /^(?:file:|\/|[A-Z]:)/i.test(place)) as string[]
}

/**
 * Folder of this package, wherever a bundler puts the code.
 * @throws Error where no place of the code has it in sight
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

/** Files of that name that lie beside the code: who moves a bundle puts what it needs beside it. */
export function besideCode(name: string): string[] {
  const folders = codePlaces().map((place) => dirname(place.startsWith('file:') ? fileURLToPath(place) : place))
  return [...new Set(folders)].map((folder) => join(folder, name)).filter((file) => existsSync(file))
}
