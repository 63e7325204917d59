import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import {
  defineLibrary,
  type LibrarySpec,
  NativeLibrary,
  offThread,
  probe,
  readCString,
  useSoftwareDevice,
} from '@shoal/ffi'
import type { NativeCall } from '@shoal/ffi/calls'
import { AlreadyInUseError, LibraryNotFoundError, SymbolNotFoundError, VersionTooOldError } from '@shoal/types'
import { afterEach, describe, expect, test } from 'vitest'
// Internals that the package does not export, because the module counts the library's functions in use.
import { installedToolkits, sitePackages } from '../src/library/folders.js'
import { markLibraryUsed, useSoftwareDevice as useSoftware } from '../src/software.js'
import { build, folder, stubFile } from './fixtures/stub.js'

const spec = (more: Partial<LibrarySpec> = {}): LibrarySpec => ({
  id: 'imaginary',
  title: 'Imaginary library',
  environment: 'SHOAL_TEST_IMAGINARY',
  linux: ['libshoal-imaginary.so.9'],
  hint: 'get it from the imagination',
  ...more,
})
const caught = (run: () => unknown): unknown => {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

const environment = { ...process.env }
afterEach(() => {
  process.env = { ...environment }
})

describe('finding a library', () => {
  test('of a missing library throws an error with every attempt, the same each time, and probe() does not throw', () => {
    process.env['CUDA_HOME'] = join(folder, 'no-toolkit')
    const library = new NativeLibrary(spec({ toolkitFolders: ['lib64'], wheelFolders: ['nvidia/imaginary/lib'] }))
    const error = caught(() => library.load()) as LibraryNotFoundError
    expect(error).toBeInstanceOf(LibraryNotFoundError)
    expect(caught(() => library.address('f'))).toBe(error)
    const steps = new Set(error.attempts.map((attempt) => attempt.step))
    for (const step of ['loaded', 'loader', 'cuda-home', 'toolkit', 'wheel']) expect(steps).toContain(step)
    expect(error.message).toContain('get it from the imagination')
    expect(error.message).toContain('SHOAL_TEST_IMAGINARY')
    expect(error.attempts.find(({ step }) => step === 'loader')?.outcome).toContain('cannot open shared object file')
    expect(error.attempts.some(({ candidate }) => candidate.includes('stubs'))).toBe(false)
    expect(library.has('f')).toBe(false)
    for (const junk of [5, null, {}, [undefined], [{}], ['cuda']]) {
      expect(() => probe(junk as never)).toThrow(/^probe: libraries(\[0\])? must be /)
    }
    const [report] = probe([library])
    expect(report).toMatchObject({ id: 'imaginary', found: false })
    expect(report?.attempts.length).toBeGreaterThan(4)
  })

  test('uses the absolute file named by the environment variable, and no other', () => {
    process.env['SHOAL_TEST_IMAGINARY'] = stubFile()
    const library = new NativeLibrary(spec())
    expect(library.isLoaded).toBe(false)
    expect(library.load()).toMatchObject({ path: stubFile(), step: 'environment' })
    // The loader accepts two of these names.
    const relatives = ['libc.so.6', relative(process.cwd(), stubFile()), './libshoal.so']
    for (const wrong of [...relatives, join(folder, 'absent.so')]) {
      process.env['SHOAL_TEST_IMAGINARY'] = wrong
      const error = caught(() => new NativeLibrary(spec({ linux: ['libc.so.6'] })).load()) as LibraryNotFoundError
      expect(error).toBeInstanceOf(LibraryNotFoundError)
      expect(error.attempts).toHaveLength(1)
      if (relatives.includes(wrong)) expect(error.attempts[0]?.outcome).toBe('not an absolute path')
    }
  })

  test('locate() returns the path without opening the library', () => {
    expect(new NativeLibrary(spec()).locate()).toBeUndefined()
    process.env['SHOAL_TEST_IMAGINARY'] = stubFile()
    const named = new NativeLibrary(spec())
    expect(named.locate()).toMatchObject({ path: stubFile(), step: 'environment' })
    expect(named.isLoaded).toBe(false)
    expect(named.trace).toEqual([])
    expect(named.load()).toMatchObject({ path: stubFile(), step: 'environment' })
    expect(named.locate()).toMatchObject({ path: stubFile(), step: 'environment' })
    for (const wrong of [join(folder, 'absent.so'), './libshoal.so', folder]) {
      process.env['SHOAL_TEST_IMAGINARY'] = wrong
      expect(new NativeLibrary(spec()).locate()).toBeUndefined()
    }
    process.env['SHOAL_TEST_IMAGINARY'] = ''
    process.env['LD_LIBRARY_PATH'] = `relative:${join(folder, 'nothing')}:${folder}`
    const placed = join(folder, 'libplaced.so')
    copyFileSync(stubFile(), placed)
    const byLoader = new NativeLibrary(spec({ linux: ['libnone.so', 'libplaced.so'] }))
    expect(byLoader.locate()).toMatchObject({ path: placed, step: 'loader' })
    expect(new NativeLibrary(spec({ linux: ['libc.so.6'] })).locate()).toMatchObject({ step: 'loaded' })
  })

  test("refuses a file that is not a library, with the loader's reason", () => {
    const file = join(folder, 'text.so')
    writeFileSync(file, 'this is a text, long enough to be read as one but with no ELF header whatsoever in it')
    const library = new NativeLibrary(spec())
    library.setPath(file)
    expect((caught(() => library.load()) as LibraryNotFoundError).attempts[0]?.outcome).toContain('invalid ELF header')
    library.setPath(stubFile())
    expect(library.load().step).toBe('option')
    expect(() => library.setPath(file)).toThrow(AlreadyInUseError)
    expect(() => library.setPath(file)).toThrow(/^NativeLibrary\.setPath: .* loaded already/)
    expect(inspect(library)).toBe(`NativeLibrary { id: 'imaginary', path: '${library.load().path}' }`)
    for (const path of ['a\0b', '', 5]) {
      expect(() => new NativeLibrary(spec()).setPath(path as string)).toThrow(/^NativeLibrary\.setPath: path must be /)
    }
  })

  test('refuses a truncated library, a folder and a pipe before the loader opens them', () => {
    const whole = readFileSync(stubFile())
    for (const bytes of [70, 500, Math.floor(whole.length / 3), Math.floor(whole.length / 2)]) {
      const file = join(folder, `truncated-${bytes}.so`)
      writeFileSync(file, whole.subarray(0, bytes))
      const library = new NativeLibrary(spec())
      library.setPath(file)
      const error = caught(() => library.load()) as LibraryNotFoundError
      expect(error).toBeInstanceOf(LibraryNotFoundError)
      expect(error.attempts[0]?.outcome).toMatch(/truncated|too short|cannot read|file/)
    }
    const pipe = join(folder, 'pipe.so')
    execFileSync('mkfifo', [pipe])
    for (const [file, outcome] of [
      [folder, 'a folder, not a library'],
      [pipe, 'not a regular file'],
    ] as const) {
      const library = new NativeLibrary(spec())
      library.setPath(file)
      expect((caught(() => library.load()) as LibraryNotFoundError).attempts[0]?.outcome).toBe(outcome)
    }
  })

  test('searches again after the software device was chosen', () => {
    const library = new NativeLibrary(spec({ sim: 'libstub.so' }))
    expect(caught(() => library.load())).toBeInstanceOf(LibraryNotFoundError)
    process.env['SHOAL_DEVICE'] = 'sim'
    process.env['SHOAL_SIM_FOLDER'] = folder
    stubFile()
    expect(library.load().step).toBe('sim')
  })

  test('does not suggest to install the software device if it is installed without the library', () => {
    process.env['SHOAL_DEVICE'] = 'sim'
    const failure = () => caught(() => new NativeLibrary(spec({ sim: 'libnowhere.so' })).load()) as LibraryNotFoundError
    expect(failure().hint).toMatch(
      /^@shoal\/sim is installed, without this library for (\w+-\w+): install its optional dependency @shoal\/sim-\1, or make -C native builds it/,
    )
    expect(failure().message).not.toContain('install @shoal/sim')
    process.env['SHOAL_SIM_FOLDER'] = folder
    expect(failure().hint).toContain('SHOAL_SIM_FOLDER')
  })

  test('searches a toolkit and a wheel, and skips a stub for linking', () => {
    const toolkit = join(folder, 'toolkit')
    mkdirSync(join(toolkit, 'lib64', 'stubs'), { recursive: true })
    const real = build('toolkit/lib64/libimaginary.so', 'int f(void){return 2;}')
    process.env['CUDA_HOME'] = toolkit
    const names = { linux: ['libimaginary.so'], toolkitFolders: ['lib64'] }
    const library = new NativeLibrary(spec(names))
    expect(library.load()).toMatchObject({ path: real, step: 'cuda-home' })

    const python = join(folder, 'venv', 'lib', 'python3.12', 'site-packages', 'nvidia', 'imaginary', 'lib')
    mkdirSync(python, { recursive: true })
    process.env['VIRTUAL_ENV'] = join(folder, 'venv')
    const wheel = build('venv/lib/python3.12/site-packages/nvidia/imaginary/lib/libw.so', 'int f(void){return 3;}')
    const inWheel = new NativeLibrary(spec({ linux: ['libw.so'], wheelFolders: ['nvidia/imaginary/lib'] }))
    expect(inWheel.load()).toMatchObject({ path: wheel, step: 'wheel' })

    const stub = build('toolkit/lib64/stubs/libs.so', 'int f(void){return 4;}')
    const onlyStub = new NativeLibrary(spec())
    onlyStub.setPath(stub)
    expect((caught(() => onlyStub.load()) as LibraryNotFoundError).attempts[0]?.outcome).toContain('stub for linking')
  })

  /** Loads `file` by its name in a separate process. Returns the file that was found and the library that ran. */
  const loadedByName = (name: string, cwd: string, environment: Record<string, string>) => {
    const program = `
      const { defineLibrary } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi'))})
      const library = defineLibrary({ id: 'one', title: 'one', environment: 'ONE_LIBRARY', linux: ['${name}'], hint: 'none' })
      let path
      try { ({ path } = library.load()) } catch {}
      console.log(JSON.stringify({ path, trace: library.trace.map(({ candidate, outcome }) => candidate + ': ' + outcome) }))`
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd,
      encoding: 'utf8',
      env: { ...process.env, LD_LIBRARY_PATH: '', ...environment },
    })
    return { stderr, ...(JSON.parse(stdout) as { path?: string; trace: string[] }) }
  }
  const speaking =
    '#include <unistd.h>\n__attribute__((constructor)) static void begin(void) { (void)!write(2, "ran", 3); }'

  test.each(['', '.', '/usr/lib:', ':/usr/lib', '/usr/lib::/tmp', './', 'here'])(
    'loads nothing from the working directory with LD_LIBRARY_PATH=%j',
    (path) => {
      mkdirSync(join(folder, 'working/here'), { recursive: true })
      for (const place of ['working', 'working/here']) build(`${place}/libworking.so`, speaking)
      const told = loadedByName('libworking.so', join(folder, 'working'), { LD_LIBRARY_PATH: path })
      expect(told.path).toBeUndefined()
      expect(told.stderr).toBe('')
      const refusals = told.trace.filter((line) => line.includes('LD_LIBRARY_PATH that is not an absolute path'))
      expect(refusals).toHaveLength(path === '' ? 0 : 1)
    },
  )

  test('uses the first absolute entry of LD_LIBRARY_PATH that has the library', () => {
    for (const place of ['first', 'second', 'empty']) mkdirSync(join(folder, place), { recursive: true })
    const first = build('first/libordered.so', speaking)
    build('second/libordered.so', speaking)
    const path = ['empty', 'first', 'second'].map((place) => join(folder, place)).join(':')
    const told = loadedByName('libordered.so', folder, { LD_LIBRARY_PATH: `:${path}` })
    expect(told).toMatchObject({ path: first, stderr: 'ran' })
  })

  test("uses the loader's cache and folders by name", () => {
    const told = loadedByName('libstdc++.so.6', folder, {})
    expect(told.path).toMatch(/^\/.*\/libstdc\+\+\.so\.6$/)
  })

  test.each(['stubs', 'linked'])('never runs code of a stub: %s', (place) => {
    mkdirSync(join(folder, 'lib/stubs'), { recursive: true })
    mkdirSync(join(folder, 'linked'), { recursive: true })
    const stub = build('lib/stubs/libspeaking.so', speaking)
    rmSync(join(folder, 'linked/libspeaking.so'), { force: true })
    symlinkSync(stub, join(folder, 'linked/libspeaking.so'))
    const path = place === 'stubs' ? join(folder, 'lib/stubs') : join(folder, place)
    const told = loadedByName('libspeaking.so', folder, { LD_LIBRARY_PATH: path })
    expect(told.path).toBeUndefined()
    expect(told.stderr).toBe('')
    expect(told.trace.join('\n')).toContain('libspeaking.so: a stub for linking, skipped')
  })

  test('takes the software device neither from the working directory nor from a relative folder', () => {
    const modules = join(folder, 'project/node_modules/@shoal/sim')
    const prebuilt = join(modules, 'prebuilds', `${process.platform}-${process.arch}`)
    mkdirSync(prebuilt, { recursive: true })
    writeFileSync(join(modules, 'package.json'), '{ "name": "@shoal/sim" }')
    build(
      join('project/node_modules/@shoal/sim/prebuilds', `${process.platform}-${process.arch}`, 'libone.so'),
      speaking,
    )
    const body = `
      const { NativeLibrary } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi'))})
      const library = new NativeLibrary({ id: 'one', title: 'one', environment: 'X', linux: ['x'], hint: 'none', sim: 'libone.so' })
      try { library.load() } catch (error) { console.log(JSON.stringify(error.attempts.map(({ candidate, outcome }) => candidate + ': ' + outcome))) }`
    const run = (environment: Record<string, string>, ...more: string[]) =>
      spawnSync(process.execPath, ['--input-type=module', '-e', body, ...more], {
        cwd: join(folder, 'project'),
        encoding: 'utf8',
        env: { ...process.env, SHOAL_DEVICE: 'sim', ...environment },
      })
    for (const { stdout, stderr } of [run({}), run({}, join(folder, 'project/argument.js'))]) {
      expect(stderr).toBe('')
      expect((JSON.parse(stdout) as string[]).join('\n')).not.toContain(folder)
    }
    const relative = run({ SHOAL_SIM_FOLDER: 'node_modules/@shoal/sim/prebuilds' })
    expect(relative.stderr).toBe('')
    expect(JSON.parse(relative.stdout)).toEqual([
      'node_modules/@shoal/sim/prebuilds: SHOAL_SIM_FOLDER is not an absolute path',
    ])
  })

  test('returns one object per id', () => {
    expect(defineLibrary(spec({ id: 'one' }))).toBe(defineLibrary(spec({ id: 'one' })))
  })
})

describe('symbols', () => {
  const stubbed = (more: Partial<LibrarySpec> = {}): NativeLibrary => {
    const library = new NativeLibrary(spec(more))
    library.setPath(stubFile())
    return library
  }

  test('a missing symbol throws a typed error, the same each time', () => {
    const library = stubbed()
    const error = caught(() => library.bind('no_such_function', 0, 1))
    expect(error).toBeInstanceOf(SymbolNotFoundError)
    expect(error).toMatchObject({ symbol: 'no_such_function', path: stubFile() })
    expect(caught(() => library.address('no_such_function'))).toBe(error)
    expect(library.has('no_such_function')).toBe(false)
    expect(library.has('take0')).toBe(true)
  })

  test('a missing symbol is looked up once, however often it is requested', () => {
    const library = stubbed()
    let lookUps = 0
    const rawSymbol = library.rawSymbol.bind(library)
    library.rawSymbol = (name) => {
      lookUps += 1
      return rawSymbol(name)
    }
    let bound: NativeCall | undefined
    const call = (): number => (bound ??= library.bind('no_such_function', 0, 1))()
    const first = caught(call)
    expect(first).toBeInstanceOf(SymbolNotFoundError)
    for (let i = 0; i < 100; i++) expect(caught(call)).toBe(first)
    for (let i = 0; i < 100; i++) expect(library.has('no_such_function')).toBe(false)
    expect(lookUps).toBe(1)
  })

  test('a resolver is called once for a symbol that it lacks or refuses', () => {
    const asked: string[] = []
    const refusal = new VersionTooOldError({ library: 'x', api: 'too_new', since: '13.1', installed: '12.0' })
    const library = stubbed({
      resolve: (_, symbol) => {
        asked.push(symbol)
        if (symbol === 'too_new') throw refusal
        return undefined
      },
    })
    const first = caught(() => library.address('absent', 12000))
    for (let i = 0; i < 10; i++) {
      expect(caught(() => library.bind('absent', 12000, 0))).toBe(first)
      expect(caught(() => library.bindBig('too_new', 13010, 0, 'u64'))).toBe(refusal)
      expect(caught(() => library.bindStruct('too_new', 13010, 0, 8))).toBe(refusal)
    }
    expect(asked).toEqual(['absent', 'too_new'])
  })

  test('a library that is too old throws an error with the needed and the installed version', () => {
    const library = stubbed({
      versionOf: () => 21805,
      formatVersion: (v) => `${Math.floor(v / 10000)}.${Math.floor(v / 100) % 100}.${v % 100}`,
    })
    const error = caught(() => library.address('ncclCommShrink', 22703)) as VersionTooOldError
    expect(error).toBeInstanceOf(VersionTooOldError)
    expect(error).toMatchObject({ since: '2.27.3', installed: '2.18.5', api: 'ncclCommShrink' })
    expect(library.versionText).toBe('2.18.5')
  })

  test('a resolver of the library takes precedence over exported names', () => {
    const asked: [string, number][] = []
    const library = stubbed({
      resolve: (self, symbol, since) => {
        asked.push([symbol, since])
        return self.rawSymbol('take0')
      },
    })
    expect(library.bind('cuAnything', 12030, 0)()).toBe(41)
    library.address('cuAnything', 12030)
    expect(asked).toEqual([['cuAnything', 12030]])
  })

  test('a signature beyond the argument block is refused', () => {
    expect(() => stubbed().bind('take0', 0, 47)).toThrow(RangeError)
    expect(() => stubbed().bind('take0', 0, -1)).toThrow(RangeError)
  })

  test('a loaded library works after its file was deleted', async () => {
    const file = build('libgone.so', 'int first(void) { return 1; } int second(void) { return 2; }')
    const library = new NativeLibrary(spec())
    library.setPath(file)
    const first = library.bind('first', 0, 0)
    rmSync(file)
    expect(first()).toBe(1)
    const second = library.bind('second', 0, 0)
    const both = (): void => {
      first()
      second()
    }
    expect(await offThread({ stopOnError: false }, both)).toEqual([1, 2])
  })

  test('text of a library can be read', () => {
    const library = new NativeLibrary(spec())
    library.setPath(
      build('libtext.so', 'const char *name(void) { return "žralok"; } const char *none(void) { return 0; }'),
    )
    expect(readCString(library.bindBig('name', 0, 0, 'pointer')())).toBe('žralok')
    expect(readCString(library.bindBig('none', 0, 0, 'pointer')())).toBeNull()
  })
})

describe('the software device', () => {
  test('is used only on request, and a wrong choice is refused', () => {
    for (const devices of [-1, 65]) expect(() => useSoftwareDevice({ devices })).toThrow(RangeError)
    expect(() => useSoftwareDevice({ device: 1 } as never)).toThrow("only the keys devices, not 'device'")
    expect(() => useSoftwareDevice(2 as never)).toThrow(TypeError)
    process.env['SHOAL_DEVICE'] = 'quantum'
    expect(caught(() => new NativeLibrary(spec()).load())).toBeInstanceOf(RangeError)
    process.env['SHOAL_DEVICE'] = 'sim'
    const error = caught(() => new NativeLibrary(spec()).load()) as LibraryNotFoundError
    expect(error.attempts).toMatchObject([{ step: 'sim' }])
    process.env['SHOAL_SIM_FOLDER'] = folder
    const absent = caught(() => new NativeLibrary(spec({ sim: 'libshoal-nothing.so' })).load()) as LibraryNotFoundError
    expect(absent.message).toContain('@shoal/sim')
  })

  test('is chosen before a library is used; a second choice changes nothing', () => {
    markLibraryUsed()
    process.env['SHOAL_DEVICE'] = 'sim'
    useSoftware()
    useSoftware({})
    const late = { code: 'SHOAL_ALREADY_IN_USE' }
    expect(caught(() => useSoftware({ devices: 2 }))).toMatchObject(late)
    process.env['SHOAL_DEVICE'] = 'gpu'
    expect(caught(() => useSoftware())).toMatchObject(late)
    process.env['SHOAL_DEVICE'] = ''
    expect(caught(() => useSoftware())).toMatchObject(late)
  })
})

describe('toolkits and Python environments on Windows', () => {
  const platform = Object.getOwnPropertyDescriptor(process, 'platform') as PropertyDescriptor
  afterEach(() => Object.defineProperty(process, 'platform', platform))

  test('are found in their install folders, newest first', () => {
    Object.defineProperty(process, 'platform', { ...platform, value: 'win32' })
    const root = join(folder, 'programs', 'NVIDIA GPU Computing Toolkit', 'CUDA')
    const names = ['v9.2', 'v12.4', 'v12.10', 'v11.9', 'v12', 'extras', 'v12.4.1']
    for (const name of names) mkdirSync(join(root, name), { recursive: true })
    const before = process.env['ProgramFiles']
    process.env['ProgramFiles'] = join(folder, 'programs')
    try {
      expect(installedToolkits()).toEqual(['v12.10', 'v12.4', 'v11.9', 'v9.2'].map((name) => join(root, name)))
      delete process.env['ProgramFiles']
      expect(installedToolkits()).toEqual([])
    } finally {
      if (before === undefined) delete process.env['ProgramFiles']
      else process.env['ProgramFiles'] = before
    }
    const environment = { VIRTUAL_ENV: '/venv', CONDA_PREFIX: 'relative' }
    expect(sitePackages(environment)).toEqual([join('/venv', 'Lib', 'site-packages')])
    expect(sitePackages({ CONDA_PREFIX: '/conda' })).toEqual([join('/conda', 'Lib', 'site-packages')])
    expect(sitePackages({})).toEqual([])
  })
})

describe('the addon', () => {
  const runNode = (body: string, env: NodeJS.ProcessEnv): { stdout: string; status: number | null } =>
    spawnSync(process.execPath, ['--input-type=module', '-e', body], {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    })
  const ffi = JSON.stringify(import.meta.resolve('@shoal/ffi'))

  test('missing or broken: throws a typed error with a remedy at first use, not at import', () => {
    const text = join(folder, 'broken.node')
    writeFileSync(text, 'not an addon')
    // The addon itself, by a path relative to the working directory.
    const prebuilt = `../prebuilds/${process.platform}-${process.arch}/shoal_ffi.node`
    const own = relative(process.cwd(), fileURLToPath(new URL(prebuilt, import.meta.url)))
    for (const file of [join(folder, 'absent.node'), text, own]) {
      const run = runNode(
        `const { NativeMemory, probeAddon } = await import(${ffi})
         try { NativeMemory.allocate(1) } catch (error) { console.log(JSON.stringify({ code: error.code, message: error.message, probe: probeAddon().loaded })) }`,
        { SHOAL_FFI_ADDON: file },
      )
      const error = JSON.parse(run.stdout) as { code: string; message: string; probe: boolean }
      expect(error.code).toBe('SHOAL_ADDON_NOT_LOADED')
      expect(error.message).toContain(file)
      expect(error.message).toMatch(/make|build|install/)
      expect(error.probe).toBe(false)
    }
  })

  test('is loaded as an addon whatever its file name, and never run as JavaScript', () => {
    const script = join(folder, 'script.js')
    writeFileSync(script, 'console.log("executed")')
    const run = runNode(
      `const { probeAddon } = await import(${ffi})
       console.log(probeAddon().loaded)`,
      { SHOAL_FFI_ADDON: script },
    )
    expect(run.stdout).toBe('false\n')
  })

  test('is not opened by the import', () => {
    const run = runNode(
      `await import(${ffi})
       const { readFileSync } = await import('node:fs')
       console.log(readFileSync('/proc/self/maps', 'utf8').includes('shoal_ffi.node'))`,
      {},
    )
    expect(run.stdout).toBe('false\n')
  })
})
