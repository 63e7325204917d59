import { libraries } from '../../../libraries/index.mjs'
import { SourceFile } from './source.js'

/** The libraries that `shoal doctor` looks for. */
export function emitDoctor(): [path: string, text: string] {
  const file = new SourceFile('cli/src/doctor/libraries.gen.ts')
  for (const { id, module } of libraries) file.use(module.split('/').slice(0, 2).join('/'), id)
  const objects = libraries.map(({ id }) => id)
  const variables = libraries.map(({ id, places }) => `  ${id}: '${places.environment}',`)
  const optional = libraries.filter(({ places }) => places.sim === undefined).map(({ id }) => `'${id}'`)
  file.add(
    '/** The libraries that can be required, by the name a user gives them. */',
    `export const librariesByName = { ${objects.join(', ')} } as const`,
    'export type LibraryName = keyof typeof librariesByName',
    '',
    '/** The environment variable that names the file of each library. Nothing else is searched if it is set. */',
    'export const variables: Readonly<Record<LibraryName, string>> = {',
    ...variables,
    '}',
    '',
    '/** Libraries that only some programs need. The software device has none of them. */',
    `export const optional: ReadonlySet<LibraryName> = new Set<LibraryName>([${optional.join(', ')}])`,
  )
  return [file.path, file.render()]
}
