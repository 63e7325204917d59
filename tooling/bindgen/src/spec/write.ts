import type { LibrarySpecFile } from './types.js'

/**
 * Writes one line per function, enum and struct. The file is small enough to commit, and a change is one line in a
 * diff.
 */
export function formatSpec(spec: LibrarySpecFile): string {
  const { functions, enums, structs, handles, callbacks, scalars, constants, ...others } = spec
  const { families, typeSets, unbound, versionedStructs, ...head } = others
  const lines = Object.entries(head).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`)
  const named = { functions, enums, structs, handles, callbacks, scalars, constants }
  const lists = { ...named, families, typeSets, unbound, versionedStructs }
  for (const [key, list] of Object.entries(lists)) {
    if (list === undefined) continue
    const rows = list.map((row) => `    ${JSON.stringify(row)}`).join(',\n')
    lines.push(`  ${JSON.stringify(key)}: [${rows === '' ? '' : `\n${rows}\n  `}]`)
  }
  return `{\n${lines.join(',\n')}\n}\n`
}
