import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { emitLibrary } from '../src/emit/library.js'
import { compareFolder, syncFolder } from '../src/files.js'
import { digestOf } from '../src/libraries.js'
import { formatSpec } from '../src/spec/write.js'
import { generatedFolders, libraryNames, noClang, noMatchingHeaders, readSpec, root, workspace } from './environment.js'

function bindgen(flags: readonly string[], environment: Record<string, string> = {}) {
  const result = spawnSync(process.execPath, [join(root, 'tooling/bindgen/dist/main.js'), ...flags], {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  })
  return { status: result.status, output: `${result.stdout}${result.stderr}` }
}

test.each(libraryNames)('%s: the committed sources equal the output of the committed spec', (name) => {
  expect(compareFolder(generatedFolders[name], emitLibrary(readSpec(name)))).toEqual([])
})

test.each(libraryNames)('%s: the spec survives reading and writing', (name) => {
  expect(JSON.parse(formatSpec(readSpec(name)))).toEqual(readSpec(name))
})

test.each(libraryNames)('%s: the spec equals the last output from headers', (name) => {
  const text = readFileSync(join(root, `tooling/bindgen/spec/${name}.json`), 'utf8')
  expect(digestOf(text)).toBe(new Map(workspace.readDigests()).get(name))
})

test.for(libraryNames)('%s: --check finds no difference from the headers', (name, { skip }) => {
  const reason = noClang() ?? noMatchingHeaders(name)
  if (reason !== undefined) return skip(reason)
  const { status, output } = bindgen(['--check', '--only', name])
  expect(output).toBe(`${name}: spec equals headers, sources equal spec\n`)
  expect(status).toBe(0)
})

const folder = scratchFolder()

test('a changed, a missing and a left-over file are each detected', () => {
  const files = new Map([
    ['a.gen.ts', 'one\ntwo\n'],
    ['b.gen.ts', 'three\n'],
  ])
  syncFolder(folder, files)
  expect(compareFolder(folder, files)).toEqual([])
  writeFileSync(join(folder, 'a.gen.ts'), 'one\n2\n')
  writeFileSync(join(folder, 'c.gen.ts'), 'left over\n')
  rmSync(join(folder, 'b.gen.ts'))
  const differences = compareFolder(folder, files).join('\n')
  expect(differences).toContain('c.gen.ts is no longer generated')
  expect(differences).toContain('b.gen.ts is missing')
  expect(differences).toMatch(/a\.gen\.ts differs at line 2:\s+committed: 2\s+generated: two/)
})

test('without clang --check fails with a reason, and passes only with --allow-missing-headers', () => {
  const missing = { CLANG: join(tmpdir(), 'there-is-no-clang') }
  const strict = bindgen(['--check', '--cuda-home', '/usr'], missing)
  expect(strict.status).toBe(1)
  expect(strict.output).toMatch(/driver: headers not compared: (no clang|cuda\.h)/)
  const lenient = bindgen(['--check', '--allow-missing-headers'], missing)
  expect(lenient.status).toBe(0)
  expect(lenient.output).toMatch(/driver: headers not compared/)
  expect(lenient.output).toContain('driver: sources equal spec')
})

test('an unexpected header version is reported', () => {
  const { output } = bindgen(['--check', '--from-spec', '--header-version', '12.4'])
  expect(output).toContain('driver: asked for headers of version 12.4, the spec is of CUDA 13.0')
})
