// Lists the packages and the entries that programs import from them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { libraries, rawPackages } from '../libraries/index.mjs'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** The packages in the order of the navigation. Packages that programs start with come first. */
export const packageOrder = [
  ...libraries.flatMap(({ safePackages }) => safePackages),
  'launch',
  'cli',
  'sim',
  'types',
  'ffi',
  ...rawPackages,
]

/** Matches entries that packages of this family import from each other. Programs must not use them. */
const ownUse = /^@shoal\/cli\b|\/(?:internal|public|basics|shared|common|calls)$/

/** Returns the entries of a package that programs import: `{ specifier, types }`. */
export function entriesOf(folder) {
  const manifest = JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8'))
  return Object.entries(manifest.exports).flatMap(([path, { types }]) => {
    const specifier = join(manifest.name, path)
    return types === undefined || ownUse.test(specifier) ? [] : [{ specifier, types: join(types) }]
  })
}

/** The folders of the packages that programs import. */
export const imported = readdirSync(join(root, 'packages')).filter((folder) => entriesOf(folder).length > 0)
