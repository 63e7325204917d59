import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { standInHeaders } from '../src/parse/include.js'
import { breakLayouts, codecsOf } from '../src/proof/brokenLayouts.js'
import { compileProgram } from '../src/proof/compile.js'
import { emitLayoutReader } from '../src/proof/layoutReader.js'
import { builtFile, type Codec, ffiFile, loadFfi, loadSysPackage, sysPackages } from '../src/proof/packages.js'
import { checkRoundTrips, type LayoutReport } from '../src/proof/roundTrip.js'
import type { LibrarySpecFile } from '../src/spec/types.js'
import { everyAbiPrelude, headers, noMatchingHeaders, prelude, root } from './environment.js'
import { specs } from './proof.js'

// Passes values through the codec of each struct to a C++ program compiled from the vendor's headers, and back.

const folder = scratchFolder()
const rows: string[] = []

function failuresOf({ failures }: LayoutReport): string[] {
  return failures.slice(0, 20).map(({ struct, what }) => `${struct}: ${what}`)
}

afterAll(() => {
  console.log(['library: structs, fields, values compared', ...rows].join('\n'))
})

/** A C++ program for some structs of a library. */
interface Reader {
  readonly names: readonly string[]
  readonly read: (input: Uint8Array) => string
}

async function makeReader(spec: LibrarySpecFile, names: readonly string[], includes: string): Promise<Reader> {
  const { tried: _, ...found } = headers
  const folders = [standInHeaders, ...new Set(Object.values(found))]
  const name = `${spec.library}-layouts-${names.length}`
  const program = await compileProgram(folder, name, emitLayoutReader(spec, names, includes), folders)
  return { names, read: (input) => execFileSync(program, { input, encoding: 'utf8', maxBuffer: 1 << 28 }) }
}

describe.each(specs.filter(({ structs }) => structs.length > 0).map((spec) => [spec.library, spec] as const))(
  'round trip of structs of %s',
  (library, spec) => {
    const reason = noMatchingHeaders(library)
    let readers: Reader[] = []

    beforeAll(async () => {
      if (reason !== undefined) return
      const [earlier, current] = [true, false].map((wanted) =>
        spec.structs.filter((entry) => (entry.earlier === true) === wanted).map(({ name }) => name),
      ) as [string[], string[]]
      readers = await Promise.all([
        makeReader(spec, current, prelude[library]),
        ...(earlier.length > 0 ? [makeReader(spec, earlier, everyAbiPrelude)] : []),
      ])
    })

    const take = (codecOf: (name: string) => Codec | undefined): LayoutReport => {
      const reports = readers.map(({ names, read }) => checkRoundTrips(spec, names, codecOf, read))
      const sum = (key: 'structs' | 'fields' | 'values'): number => reports.reduce((all, each) => all + each[key], 0)
      return {
        structs: sum('structs'),
        fields: sum('fields'),
        values: sum('values'),
        failures: reports.flatMap(({ failures }) => failures),
      }
    }

    test('preserves every field of every struct through C++', async ({ skip }) => {
      if (reason !== undefined) return skip(reason)
      const { exports } = await loadSysPackage(join(root, builtFile(sysPackages[library].specifier)), library)
      const report = take((name) => exports[name] as Codec | undefined)
      expect(failuresOf(report)).toEqual([])
      expect(report.structs).toBe(spec.structs.length)
      rows.push(`${library}: ${report.structs}, ${report.fields}, ${report.values}`)
    })

    test('reports exactly the wrong layouts', async ({ skip }) => {
      if (reason !== undefined) return skip(reason)
      const { layouts, broken } = breakLayouts(spec)
      const codecs = codecsOf(await loadFfi(join(root, ffiFile)), layouts)
      const reported = new Set(take((name) => codecs.get(name)).failures.map(({ struct }) => struct))
      expect([...reported].sort()).toEqual([...broken.keys()].sort())
      rows.push(`${library}, broken on purpose and reported: ${[...new Set(broken.values())].join(', ')}`)
    })
  },
)
