import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { moduleRunner } from '../../ffi/test/support/stub.js'
import { defaultFolder } from '../src/cache/folder.js'
import { prune } from '../src/cache/prune.js'
import { fakeCompiler, noCCompiler } from './support/fakeCompiler.js'

const packageFolder = new URL('../', import.meta.url)
const runModule = moduleRunner(packageFolder)
const reason = noCCompiler()
const library = reason === undefined ? fakeCompiler() : ''
const scratch = scratchFolder()
const folder = join(scratch, 'cache')
const entries = join(folder, 'nvrtc')
const counter = join(scratch, 'count')

beforeEach(() => {
  rmSync(folder, { recursive: true, force: true })
  rmSync(counter, { force: true })
})

const environment = { SHOAL_NVRTC_LIBRARY: library, SHOAL_CACHE_FOLDER: folder, FAKE_COUNT: counter }
const compilations = (): number => (existsSync(counter) ? readFileSync(counter).length : 0)

/** Compiles in a separate process. Returns the results' origins, problems and PTX. */
function compile(
  source: string,
  options = '{}',
  programOptions = '{}',
): { origin: string; problem?: string; ptx: string } {
  const [line] = runModule(
    `import { Program } from '@shoal/nvrtc'
     const { origin, cacheProblem: problem, ptx } = new Program(${JSON.stringify(source)}, ${programOptions}).compileSync(${options})
     console.log(JSON.stringify({ origin, problem, ptx }))`,
    environment,
  )
  return JSON.parse(line as string)
}

describe('compilation results are cached', () => {
  test('on disk for other processes, and in memory for this one', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    expect(compile('a').origin).toBe('compiler')
    expect(compile('a')).toEqual({ origin: 'disk', ptx: 'a' })
    expect(compilations()).toBe(1)
    const lines = runModule(
      `import { Program } from '@shoal/nvrtc'
       for (let i = 0; i < 3; i++) console.log((await new Program('b').compile()).origin)
       console.log(new Program('b').compileSync({ cache: false }).origin)`,
      environment,
    )
    expect(lines).toEqual(['compiler', 'memory', 'memory', 'compiler'])
  })

  test.for<readonly [string, string, string, string]>([
    ['another source', '{}', '{}', 'a '],
    ['another option', '{ ftz: true }', '{}', 'a'],
    ['another name', '{}', "{ name: 'b.cu' }", 'a'],
    ['another header', '{}', "{ headers: { 'a.h': '1' } }", 'a'],
    ['another name expression', '{}', "{ nameExpressions: ['f'] }", 'a'],
    ['another raw option', "{ raw: ['--uumn'] }", '{}', 'a'],
  ])('separately for %s', ([_what, options, programOptions, source], { skip }) => {
    if (reason !== undefined) return skip(reason)
    expect(compile('a').origin).toBe('compiler')
    expect(compile(source, options, programOptions).origin).toBe('compiler')
    expect(compile(source, options, programOptions).origin).toBe('disk')
  })

  test('so that a result on disk needs no loaded NVRTC', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const ask = `import { Program, supportedArchitectures } from '@shoal/nvrtc'
      import { nvrtc } from '@shoal/nvrtc-sys'
      const architectures = supportedArchitectures().join()
      const { origin, ptx } = await new Program('a').compile()
      console.log(architectures, origin, ptx, nvrtc.isLoaded, supportedArchitectures({ cache: false }).join(), nvrtc.isLoaded)`
    expect(runModule(ask, environment)).toEqual(['75,80,90 compiler a true 75,80,90 true'])
    expect(runModule(ask, environment)).toEqual(['75,80,90 disk a false 75,80,90 false'])
    const without = ask.replace('supportedArchitectures()', 'supportedArchitectures({ cache: false })')
    expect(runModule(without, environment)).toEqual(['75,80,90 disk a true 75,80,90 true'])
  })

  describe('separately for each NVRTC installation', () => {
    const place = join(scratch, 'replaced')
    const file = join(place, 'libnvrtc.so.13')
    const builtins = join(place, 'libnvrtc-builtins.so.13.0')
    const time = new Date(2_000_000)
    const put = (target = file): void => {
      mkdirSync(place, { recursive: true })
      writeFileSync(target, readFileSync(library))
      utimesSync(target, time, time)
    }
    const origin = (env: Record<string, string> = {}, before = ''): string | undefined =>
      runModule(
        `import { renameSync } from 'node:fs'
         import { Program } from '@shoal/nvrtc'
         import { nvrtc } from '@shoal/nvrtc-sys'
         ${before}
         const { origin, cacheProblem } = await new Program('a').compile()
         console.log(cacheProblem === undefined ? origin : [origin, cacheProblem].join(': '))`,
        { ...environment, SHOAL_NVRTC_LIBRARY: file, ...env },
      )[0]

    test.for<readonly [string, () => void]>([
      ['that was touched', () => utimesSync(file, time, new Date(1_000_000))],
      [
        'that was changed in place, with its old time set back',
        () => {
          writeFileSync(file, Buffer.concat([readFileSync(library), Buffer.alloc(1)]))
          writeFileSync(file, readFileSync(library))
          utimesSync(file, time, time)
        },
      ],
      [
        'of the same size and time that was put in its place',
        () => {
          put(`${file}.new`)
          renameSync(`${file}.new`, file)
        },
      ],
      ['next to other device built-ins', () => put(builtins)],
    ])('such as one %s', ([_what, change], { skip }) => {
      if (reason !== undefined) return skip(reason)
      rmSync(place, { recursive: true, force: true })
      put()
      expect([origin(), origin()]).toEqual(['compiler', 'disk'])
      change()
      expect([origin(), origin()]).toEqual(['compiler', 'disk'])
    })

    test('and not if a loaded NVRTC file was replaced', ({ skip }) => {
      if (reason !== undefined) return skip(reason)
      put()
      put(`${file}.new`)
      const replace = `nvrtc.load(); renameSync('${file}.new', '${file}')`
      const told = `compiler: ${file} was replaced since it was loaded`
      expect(origin({}, replace)).toBe(told)
      expect([origin(), origin()]).toEqual(['compiler', 'disk'])
      put(`${file}.new`)
      expect(origin({}, replace)).toBe(told)
    })

    test('and not under a library that failed to load before the next one was used', ({ skip }) => {
      if (reason !== undefined) return skip(reason)
      const bad = join(scratch, 'bad')
      mkdirSync(bad, { recursive: true })
      writeFileSync(join(bad, 'libnvrtc.so.13'), 'no library')
      put()
      const search = { SHOAL_NVRTC_LIBRARY: '', LD_LIBRARY_PATH: `${bad}:${place}` }
      expect([origin(search), origin(search)]).toEqual(['compiler', 'compiler'])
      rmSync(bad, { recursive: true })
      expect([origin(search), origin(search)]).toEqual(['compiler', 'disk'])
    })
  })

  test('on disk only if they are large', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const lines = runModule(
      `import { Program } from '@shoal/nvrtc'
       const make = (bytes) => new Program('a'.repeat(bytes)).compileSync().origin
       for (const bytes of [2 ** 21, 9 * 2 ** 20]) console.log(make(bytes), make(bytes))`,
      environment,
    )
    expect(lines).toEqual(['compiler memory', 'compiler disk'])
  })

  test('as copies, so that changes by a caller do not affect the next one', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const lines = runModule(
      `import { Program } from '@shoal/nvrtc'
       const make = () => new Program('cubin').compileSync({ architecture: 'sm_90' })
       const [first, second] = [make(), make()]
       console.log(first === second, first.origin, second.origin)`,
      environment,
    )
    expect(lines).toEqual(['false compiler memory'])
  })

  test('unless they are errors', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    for (let count = 1; count <= 2; count++) {
      expect(() => compile('#error no')).toThrow(/NVRTC_ERROR_COMPILATION/)
      expect(compilations()).toBe(count)
    }
  })
})

describe('the cache key includes headers in folders', () => {
  const include = join(scratch, 'include')
  const options = JSON.stringify({ includeFolders: [include] })
  const write = (name: string, text: string): void => {
    mkdirSync(include, { recursive: true })
    writeFileSync(join(include, name), text)
  }

  test.for<readonly [string, string]>([
    ['one that is included', '#include "a.h"'],
    ['one with spaces and a comment', '#  /* why */ include /* this */ <a.h>'],
    ['one that is asked for', '#if __has_include(<a.h>)'],
    ['one behind another', '#include <outer.h>'],
    ['one on the next line', '#include \\\n "a.h"'],
    ['one in a divided directive', '#inc\\\nlude "a.h"'],
  ])('and detects a change of %s', ([_what, source], { skip }) => {
    if (reason !== undefined) return skip(reason)
    write('outer.h', '#include "a.h"')
    write('a.h', 'one')
    expect(compile(source, options).origin).toBe('compiler')
    expect(compile(source, options).origin).toBe('disk')
    write('a.h', 'two')
    expect(compile(source, options).origin).toBe('compiler')
    rmSync(join(include, 'a.h'))
    expect(compile(source, options).origin).toBe('compiler')
    write('a.h', 'one')
    expect(compile(source, options).origin).toBe('disk')
  })

  test.for<readonly [string, string, string]>([
    ['a macro names the header', '#define H "a.h"\n#include H', '{}'],
    ['an option writes a file', 'a', "{ timeFile: '/tmp/none/t' }"],
    ['a precompiled header is made', 'a', "{ createPch: '/tmp/none/p' }"],
    ['a raw option names a folder', 'a', "{ raw: ['-I', '/tmp'] }"],
  ])('and disables caching if %s', ([_what, source, given], { skip }) => {
    if (reason !== undefined) return skip(reason)
    for (let count = 1; count <= 2; count++) expect(compile(source, given).origin).toBe('compiler')
    expect(compilations()).toBe(2)
  })

  test('and rejects a header that changes during compilation', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    write('a.h', 'one')
    const lines = runModule(
      `import { writeFileSync } from 'node:fs'
       import { Program } from '@shoal/nvrtc'
       const program = new Program('#include "a.h"')
       const first = program.compile(${options})
       await new Promise((resolve) => setTimeout(resolve, 50))
       writeFileSync(${JSON.stringify(join(include, 'a.h'))}, 'two')
       console.log((await first).origin)
       writeFileSync(${JSON.stringify(join(include, 'a.h'))}, 'one')
       console.log((await program.compile(${options})).origin)`,
      { ...environment, FAKE_SLEEP: '1000' },
    )
    expect(lines).toEqual(['compiler', 'compiler'])
  })
})

describe('an untrusted cache folder or file', () => {
  const entryFile = (): string => join(entries, readdirSync(entries)[0] as string)

  test.for<[string, (file: string) => void]>([
    ['is cut off', (file) => writeFileSync(file, readFileSync(file).subarray(0, -1))],
    ['is empty', (file) => writeFileSync(file, '')],
    [
      'has one bit turned',
      (file) => {
        const bytes = readFileSync(file)
        const last = bytes.length - 1
        bytes[last] = (bytes[last] as number) ^ 1
        writeFileSync(file, bytes)
      },
    ],
    [
      'is another entry',
      (file) => {
        compile('other')
        const other = readdirSync(entries)
          .map((name) => join(entries, name))
          .find((each) => each !== file) as string
        writeFileSync(file, readFileSync(other))
      },
    ],
  ])('such as an entry that %s is compiled again and replaced', ([_what, spoil], { skip }) => {
    if (reason !== undefined) return skip(reason)
    compile('a')
    spoil(entryFile())
    expect(compile('a')).toEqual({ origin: 'compiler', ptx: 'a' })
    expect(compile('a')).toEqual({ origin: 'disk', ptx: 'a' })
  })

  test('such as an entry writable by others or a link is ignored and reported', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    compile('a')
    const file = entryFile()
    chmodSync(file, 0o666)
    expect(compile('a')).toEqual({ origin: 'compiler', ptx: 'a', problem: `${file} can be written by others` })
    const aside = join(scratch, 'aside')
    writeFileSync(aside, readFileSync(file), { mode: 0o600 })
    rmSync(file)
    symlinkSync(aside, file)
    expect(compile('a')).toMatchObject({ origin: 'compiler', problem: expect.stringContaining('ELOOP') })
    rmSync(file)
    mkdirSync(file)
    expect(compile('a')).toMatchObject({ origin: 'compiler', problem: expect.stringMatching(/is no file|EISDIR/) })
  })

  test('such as a folder writable by others, a link or a file is ignored and reported', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    compile('a')
    chmodSync(entries, 0o777)
    expect(compile('a')).toMatchObject({ origin: 'compiler', problem: `${entries} can be written by others` })
    const elsewhere = join(scratch, 'elsewhere')
    mkdirSync(elsewhere, { mode: 0o700, recursive: true })
    rmSync(entries, { recursive: true })
    symlinkSync(elsewhere, entries)
    expect(compile('a')).toMatchObject({ origin: 'compiler', problem: `${entries} is no folder` })
    expect(readdirSync(elsewhere)).toEqual([])
    rmSync(entries)
    writeFileSync(entries, '')
    expect(compile('a')).toMatchObject({ origin: 'compiler', problem: `${entries} is no folder` })
  })

  test('that cannot be created or written does not prevent compilation', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    writeFileSync(join(scratch, 'file'), '')
    const inFile = JSON.stringify({ cache: join(scratch, 'file') })
    expect(compile('a', inFile)).toMatchObject({
      origin: 'compiler',
      ptx: 'a',
      problem: expect.stringContaining('ENOTDIR'),
    })
    // A full device, which refuses writes.
    expect(compile('a', JSON.stringify({ cache: '/proc' }))).toMatchObject({
      origin: 'compiler',
      problem: expect.stringContaining('/proc'),
    })
    expect(compile('a', JSON.stringify({ cache: '/dev/full' }))).toMatchObject({
      origin: 'compiler',
      problem: expect.stringContaining('/dev/full'),
    })
  })

  test('on a full or read-only disk does not prevent compilation', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const mount = 'mount -t tmpfs -o "$0" tmpfs "$1" && shift && exec "$@"'
    const inside = (disk: string, ...command: string[]) =>
      spawnSync('unshare', ['--mount', 'sh', '-c', mount, disk, folder, ...command], {
        cwd: packageFolder,
        env: { ...process.env, ...environment },
        encoding: 'utf8',
      })
    mkdirSync(folder)
    if (inside('size=64k', 'true').status !== 0) return skip('file systems cannot be mounted here: not root')
    const program = `
      import { Program } from '@shoal/nvrtc'
      const source = 'a'.repeat(200_000)
      const { origin, cacheProblem, ptx } = new Program(source).compileSync()
      console.log(origin, ptx === source, cacheProblem)`
    const run = (disk: string): string =>
      inside(disk, process.execPath, '--input-type=module', '-e', program).stdout.trim()
    expect(run('size=64k,mode=700')).toMatch(/^compiler true .*ENOSPC/)
    expect(run('ro,mode=700')).toMatch(/^compiler true .*EROFS/)
    expect(run('size=1m,mode=700')).toBe('compiler true undefined')
  })

  test('of another user is not used', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    if (process.getuid?.() !== 0) return skip('only root can be another user')
    compile('a')
    const lines = runModule(
      `import { Program, supportedArchitectures } from '@shoal/nvrtc'
       import { nvrtc } from '@shoal/nvrtc-sys'
       nvrtc.load()
       supportedArchitectures()
       process.seteuid(65534)
       process.getuid = () => 65534
       const { origin, cacheProblem } = new Program('a').compileSync()
       console.log(origin, cacheProblem !== undefined)`,
      environment,
    )
    expect(lines).toEqual(['compiler true'])
  })
})

test('sixteen randomly killed processes leave complete cache entries and correct results', {
  timeout: 300_000,
}, async ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const module = `import { Program } from '@shoal/nvrtc'
    for (let round = 0; round < 400; round++) {
      const source = 'source ' + (round % 7) + ' '.repeat(2000 * (round % 7))
      const { ptx } = new Program(source).compileSync({ defines: { R: round % 40 } })
      if (ptx !== source) { console.error('wrong: ' + ptx.slice(0, 20)); process.exit(3) }
    }`
  const { SHOAL_DEVICE: _, ...inherited } = process.env
  const outcomes = await Promise.all(
    Array.from({ length: 16 }, (_unused, index) => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', module], {
        cwd: packageFolder,
        env: { ...inherited, ...environment, FAKE_SLEEP: '1' },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let said = ''
      child.stderr.on('data', (text) => {
        said += text
      })
      // Kills every second process at a random time during its work.
      if (index % 2 === 0) setTimeout(() => child.kill('SIGKILL'), 300 + Math.random() * 3000)
      return new Promise<string>((resolve) => child.on('close', (code, signal) => resolve(signal ?? `${code} ${said}`)))
    }),
  )
  for (const outcome of outcomes) expect(outcome).toMatch(/^(SIGKILL|0 )$/)
  expect(outcomes.filter((outcome) => outcome === '0 ').length).toBeGreaterThanOrEqual(8)
  // Each existing entry is readable and matches its source.
  const names = readdirSync(entries).filter((name) => name.endsWith('.bin'))
  expect(names.length).toBeGreaterThan(0)
  for (const name of names)
    expect(readFileSync(join(entries, name)).toString('latin1', 0, 17)).toBe('shoal compiled 1\n')
  rmSync(counter, { force: true })
  const lines = runModule(`${module}\nconsole.log('right')`, environment)
  expect(lines).toEqual(['right'])
  expect(compilations()).toBe(0)
})

describe('the cache folder', () => {
  test("is the configured one, the system's, or one in the home folder", () => {
    const home = join(homedir(), '.cache', 'shoal')
    for (const [environment, expected] of [
      [{ SHOAL_CACHE_FOLDER: '/named', XDG_CACHE_HOME: '/xdg' }, '/named'],
      [{ SHOAL_CACHE_FOLDER: '', XDG_CACHE_HOME: '/xdg' }, '/xdg/shoal'],
      [{ XDG_CACHE_HOME: '/xdg', LOCALAPPDATA: '/local' }, '/xdg/shoal'],
      [{ XDG_CACHE_HOME: '', LOCALAPPDATA: '/local' }, '/local/shoal'],
      [{ LOCALAPPDATA: '/local' }, '/local/shoal'],
      [{ XDG_CACHE_HOME: 'relative' }, home],
      [{}, home],
    ] as const) {
      expect([environment, defaultFolder(environment)]).toEqual([environment, expected])
    }
  })

  const hour = 3_600_000
  /**
   * Creates files with these names, sizes and ages in milliseconds. Returns those that a cache of `most` bytes keeps.
   */
  function kept(files: readonly (readonly [name: string, bytes: number, age: number])[], most?: number): string[] {
    mkdirSync(folder, { recursive: true })
    mkdirSync(join(folder, 'folder.bin'), { recursive: true })
    for (const [name, bytes, age] of files) {
      writeFileSync(join(folder, name), new Uint8Array(bytes))
      const time = new Date(Date.now() - age)
      utimesSync(join(folder, name), time, time)
    }
    prune(folder, most)
    return readdirSync(folder).filter((name) => name !== 'folder.bin')
  }

  test('drops its oldest entries while it is too large', () => {
    const files = [
      ['a.bin', 40, 1 * hour],
      ['b.bin', 60, 3 * hour],
      ['c.bin', 50, 2 * hour],
      ['d.bin', 10, 4 * hour],
      ['other', 1000, 9 * hour],
    ] as const
    expect(kept(files, 160)).toEqual(['a.bin', 'b.bin', 'c.bin', 'd.bin', 'other'])
    expect(kept(files, 159)).toEqual(['a.bin', 'b.bin', 'c.bin', 'other'])
    expect(kept(files, 149)).toEqual(['a.bin', 'c.bin', 'other'])
    expect(kept(files, 90)).toEqual(['a.bin', 'c.bin', 'other'])
    expect(kept(files, 89)).toEqual(['a.bin', 'other'])
    expect(kept(files, 0)).toEqual(['other'])
    expect(kept(files)).toEqual(['a.bin', 'b.bin', 'c.bin', 'd.bin', 'other'])
  })

  test('drops files of a process that has been writing for more than an hour', () => {
    const files = [
      ['a.tmp', 1, hour + 60_000],
      ['b.tmp', 1, hour - 60_000],
      ['c.bin', 1, 9 * hour],
    ] as const
    expect(kept(files)).toEqual(['b.tmp', 'c.bin'])
  })
})
