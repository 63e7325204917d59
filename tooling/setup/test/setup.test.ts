import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, it } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { countTests, describeFailures } from '../count.mjs'
import { closure, entryPoints, publishablePackages } from '../publishable.mjs'
import { checkNode } from '../requirements.mjs'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const scratch = scratchFolder()
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(scratch, 'test-'))
})

describe('setup requirements', () => {
  it('include the wanted Node version, and refuse an older one', () => {
    expect(() => checkNode('>=20.19')).not.toThrow()
    expect(() => checkNode('>=99.1')).toThrow(`needs Node.js 99.1 or newer; this is ${process.versions.node}`)
  })

  it('name a missing compiler and its package', () => {
    symlinkSync(process.execPath, join(folder, 'node'))
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'tooling/setup/run.mjs'), 'build'], {
      env: { PATH: folder },
      encoding: 'utf8',
    })
    expect(status).toBe(1)
    expect(stderr).toContain('Not found: g++ and make')
    expect(stderr).toContain('apt-get install g++ make')
    expect(stderr).not.toContain('    at ')
  })

  it('refuse an unknown job', () => {
    const run = spawnSync(process.execPath, [join(root, 'tooling/setup/run.mjs'), 'dance'], { encoding: 'utf8' })
    expect(run.status).toBe(1)
    expect(run.stderr).toContain('Unknown job dance')
  })
})

describe('the format check of C and C++', () => {
  const check = (text: string) => {
    const file = join(folder, 'source.cc')
    writeFileSync(file, text)
    return spawnSync(process.execPath, [join(root, 'tooling/setup/cxxFormat.mjs'), file], { encoding: 'utf8' })
  }

  it('passes a formatted source, and suggests a fix for another one and for a long line', (context) => {
    if (!existsSync(join(root, 'node_modules/.cache/shoal/tools/clang-format/installed.json'))) {
      context.skip('no clang-format here: `pnpm check` fetches it')
    }
    expect(check('int one = 1;\n')).toMatchObject({ status: 0, stderr: '' })
    const unformatted = check('int   one=1;\n')
    expect(unformatted.status).toBe(1)
    expect(unformatted.stderr).toContain('source.cc:1:4')
    expect(unformatted.stderr).toContain('`pnpm format` does it')
    const long = check(`const char* text = R"(${'x'.repeat(120)})";\n`)
    expect(long.status).toBe(1)
    expect(long.stderr).toContain('source.cc:1: more than 120 columns')
  })
})

describe('the test summary', () => {
  it('counts a file that did not load as a failure', () => {
    const file = join(folder, 'vitest.json')
    const assertionResults = ['passed', 'passed', 'failed', 'skipped', 'todo'].map((status) => ({ status }))
    const testResults = [
      { status: 'failed', assertionResults },
      { status: 'failed', assertionResults: [] },
    ]
    writeFileSync(file, JSON.stringify({ testResults }))
    expect(countTests(file)).toEqual({ passed: 2, failed: 2, skipped: 2 })
  })

  it('lists failed tests with their reasons', () => {
    const file = join(folder, 'vitest.json')
    const testResults = [
      {
        name: join(root, 'packages/a/test/a.test.ts'),
        status: 'failed',
        assertionResults: [
          { status: 'passed', ancestorTitles: [], title: 'adds' },
          {
            status: 'failed',
            ancestorTitles: ['a sum', 'of bytes'],
            title: 'wraps',
            failureMessages: ['\u001b[31mexpected 1\u001b[0m\nto be 2\nat a\nat b'],
          },
        ],
      },
      { name: join(root, 'b.test.ts'), status: 'failed', message: 'no such file', assertionResults: [] },
    ]
    writeFileSync(file, JSON.stringify({ testResults }))
    expect(describeFailures(file, 3)).toEqual([
      'failed: packages/a/test/a.test.ts > a sum > of bytes > wraps\n  expected 1\n  to be 2\n  at a',
      'failed: b.test.ts\n  no such file',
    ])
    expect(describeFailures(join(folder, 'none.json'))).toEqual([])
  })

  it('is empty without a report', () => {
    expect(countTests(join(folder, 'none.json'))).toEqual({ passed: 0, failed: 0, skipped: 0 })
  })
})

describe('publishable packages', () => {
  const manifest = (dependencies: Record<string, string>, exports: Record<string, string> = {}) => ({
    manifest: { dependencies, exports },
  })

  it('follow only dependencies inside the workspace', () => {
    const packages = new Map([
      ['a', manifest({ b: '*', koffi: '1' })],
      ['b', manifest({ c: '*' })],
      ['c', manifest({})],
      ['d', manifest({})],
    ])
    expect([...closure(packages, 'a')]).toEqual(['a', 'b', 'c'])
  })

  it('depend only on each other, and run no install scripts', () => {
    const packages = publishablePackages()
    expect(packages.size).toBeGreaterThan(10)
    for (const { manifest } of packages.values()) {
      const {
        dependencies = {},
        optionalDependencies = {},
        peerDependencies = {},
        peerDependenciesMeta = {},
      } = manifest
      const wanted = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)
      const brought = [...Object.keys({ ...dependencies, ...optionalDependencies }), ...wanted]
      expect(brought.filter((name) => !packages.has(name))).toEqual([])
      const scripts = Object.keys(manifest.scripts ?? {})
      expect(scripts.filter((name) => /^(pre|post)?(install|prepare)$/.test(name))).toEqual([])
    }
  })

  it('list their import specifiers', () => {
    const exports = { '.': './dist/index.js', './calls': './dist/calls.js', './package.json': './package.json' }
    expect(entryPoints({ name: 'a', ...manifest({}, exports) })).toEqual(['a', 'a/calls'])
  })
})
