import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { moduleRunner } from '../../ffi/test/support/stub.js'
import { fakeCompiler, noCCompiler } from './support/fakeCompiler.js'

const runModule = moduleRunner(new URL('../', import.meta.url))
const reason = noCCompiler()
const scratch = scratchFolder()
const cache = join(scratch, 'cache')
const pipe = join(scratch, 'pipe.h')
if (reason === undefined) execFileSync('mkfifo', [pipe])
const environment = { SHOAL_NVRTC_LIBRARY: reason === undefined ? fakeCompiler() : '', SHOAL_CACHE_FOLDER: cache }

/** Compiles in a separate process, so that a blocked thread ends only that process. */
function compile(source: string, options: object = {}): string[] {
  return runModule(
    `import { Program } from '@shoal/nvrtc'
     const { origin, cacheProblem } = new Program(${JSON.stringify(source)}).compileSync(${JSON.stringify(options)})
     console.log(origin)
     if (cacheProblem !== undefined) console.log(cacheProblem)`,
    environment,
  )
}

test.for<readonly [string, string, object]>([
  ['an included pipe', '#include "pipe.h"', { includeFolders: [scratch] }],
  ['an included device', '#include "/dev/zero"', {}],
  ['a precompiled header that is a pipe', 'a', { usePch: pipe }],
])('%s does not block the thread, and the result is not cached', ([_what, source, options], { skip }) => {
  if (reason !== undefined) return skip(reason)
  for (let count = 1; count <= 2; count++) expect(compile(source, options)).toEqual(['compiler'])
})

test('a cache entry that is a pipe does not block the thread, and is reported', ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const entries = join(cache, 'nvrtc')
  rmSync(entries, { recursive: true, force: true })
  mkdirSync(cache, { recursive: true })
  expect(compile('a')).toEqual(['compiler'])
  const file = join(entries, readdirSync(entries)[0] as string)
  rmSync(file)
  execFileSync('mkfifo', [file])
  expect(compile('a')).toEqual(['compiler', `${file} is no file`])
})
