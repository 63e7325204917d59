import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

const packages = fileURLToPath(new URL('../..', import.meta.url))
const platform = `linux-${process.arch}`
const built = join(packages, 'ffi', 'prebuilds', platform, 'shoal_ffi.node')
const scratch = scratchFolder()
chmodSync(scratch, 0o755)
/** A project with installed packages: each in the folder to which its tarball would be unpacked. */
let project: string
let addon: string

beforeEach(() => {
  project = mkdtempSync(join(scratch, 'project-'))
  chmodSync(project, 0o755)
  install(project)
  addon = join(project, 'node_modules', '@shoal', `ffi-${platform}`, 'shoal_ffi.node')
})

function install(project: string): void {
  const modules = join(project, 'node_modules', '@shoal')
  for (const [name, parts] of Object.entries({ types: ['dist', 'package.json'], ffi: ['dist', 'package.json'] })) {
    for (const part of parts) cpSync(join(packages, name, part), join(modules, name, part), { recursive: true })
  }
  cpSync(join(packages, 'ffi', 'prebuilds', platform), join(modules, `ffi-${platform}`), { recursive: true })
}

interface Told {
  readonly bytes?: number
  readonly code?: string
  readonly platform?: string
  readonly attempts?: { step: string; candidate: string; outcome: string }[]
  readonly message?: string
}

const telling = `
  import { NativeMemory } from '@shoal/ffi'
  try {
    console.log(JSON.stringify({ bytes: NativeMemory.allocate(8).byteLength }))
  } catch ({ code, platform, attempts, message }) {
    console.log(JSON.stringify({ code, platform, attempts, message }))
  }`

function use(options: { uid?: number } = {}): Told {
  writeFileSync(join(project, 'program.mjs'), telling)
  return run(join(project, 'program.mjs'), options)
}

function run(program: string, options: { uid?: number } = {}): Told {
  const { SHOAL_FFI_ADDON: _, NODE_PATH: __, ...env } = process.env
  const { stdout, stderr, signal } = spawnSync(process.execPath, [program], { encoding: 'utf8', env, ...options })
  expect({ stderr, signal }).toEqual({ stderr: '', signal: null })
  return JSON.parse(stdout) as Told
}

/** Returns the first advice. */
function advice(told: Told): string | undefined {
  return /What to do:\n {2}- (.*)/.exec(told.message ?? '')?.[1]
}

describe.skipIf(process.platform !== 'linux')('the addon as installed by packages (on Linux)', () => {
  test('is loaded from the platform package, and before that from an in-place build', () => {
    expect(use()).toEqual({ bytes: 8 })
    const inPlace = join(project, 'node_modules/@shoal/ffi/prebuilds', platform)
    mkdirSync(inPlace, { recursive: true })
    writeFileSync(join(inPlace, 'shoal_ffi.node'), 'no addon')
    expect(use()).toEqual({ bytes: 8 })
    cpSync(built, join(inPlace, 'shoal_ffi.node'))
    rmSync(join(addon, '..'), { recursive: true })
    expect(use()).toEqual({ bytes: 8 })
  })

  test('if left out, causes an error that names the package to install', () => {
    rmSync(join(addon, '..'), { recursive: true })
    const told = use()
    expect(told).toMatchObject({ code: 'SHOAL_ADDON_NOT_LOADED', platform, attempts: [{ outcome: 'not there' }] })
    expect(advice(told)).toContain(`Install @shoal/ffi-${platform}, an optional dependency of @shoal/ffi`)
    expect(advice(told)).toContain(`npm install --include=optional @shoal/ffi-${platform}`)
  })

  test('for another processor causes an error that names that processor', () => {
    const other = process.arch === 'x64' ? { name: 'arm64', code: 183 } : { name: 'x64', code: 62 }
    const bytes = readFileSync(addon)
    bytes.writeUInt16LE(other.code, 18)
    writeFileSync(addon, bytes)
    const told = use()
    const outcome = `built for ${other.name}, and this Node.js for ${process.arch}`
    expect(told.attempts).toEqual([{ step: 'prebuilt', candidate: addon, outcome }])
    expect(advice(told)).toContain('The packages were installed on another platform; install them here')
  })

  test('for musl causes an error that names the other C library', () => {
    const source = join(project, 'libc.c')
    writeFileSync(source, 'void other_libc(void) {}')
    const libc = join(project, 'libc.musl-test.so.1')
    execFileSync('gcc', ['-shared', '-fPIC', '-nostdlib', '-Wl,-soname,libc.musl-test.so.1', '-o', libc, source])
    writeFileSync(source, 'void other_libc(void); void napi_register_module_v1(void) { other_libc(); }')
    execFileSync('gcc', ['-shared', '-fPIC', '-nostdlib', '-o', addon, source, libc])
    const told = use()
    expect(told.attempts?.[0]?.outcome).toContain('libc.musl-test.so.1')
    expect(advice(told)).toContain(
      `The addon is for another C library, or for a newer one; this system is ${platform}.`,
    )
  })

  test.each([
    ['cut off', (bytes: Buffer) => bytes.subarray(0, 100_000), /^truncated: 100000 bytes/],
    ['empty', () => Buffer.alloc(0), /file too short/],
    ['a text', () => Buffer.from('<html>Not found</html>'.repeat(100)), /invalid ELF header/],
  ] as const)('if damaged, %s, causes an error, and the process survives', (_, change, outcome) => {
    writeFileSync(addon, change(readFileSync(addon)))
    const told = use()
    expect(told.attempts?.[0]?.outcome).toMatch(outcome)
    expect(advice(told)).toBe('The file is damaged: remove node_modules and install again.')
  })

  test('if unreadable, causes an error with that reason', () => {
    chmodSync(addon, 0o000)
    const told = use(process.getuid?.() === 0 ? { uid: 65_534 } : {})
    expect(told.attempts?.[0]?.outcome).toMatch(/permission denied/i)
    expect(advice(told)).toContain('Let the user of this process read the file')
  })

  test('named by a wrong variable causes an error, and no other place is tried', () => {
    writeFileSync(join(project, 'named.mjs'), `process.env.SHOAL_FFI_ADDON = 'addon.node'\n${telling}`)
    const told = run(join(project, 'named.mjs'))
    expect(told.attempts).toEqual([{ step: 'environment', candidate: 'addon.node', outcome: 'not an absolute path' }])
    expect(advice(told)).toContain('SHOAL_FFI_ADDON names the file')
  })

  test('bundled and moved away from its packages causes an error that suggests an external', async () => {
    use()
    const { rolldown } = await import('rolldown')
    const bundle = await rolldown({ input: join(project, 'program.mjs'), platform: 'node' })
    const [{ code }] = (await bundle.generate({ format: 'esm' })).output
    await bundle.close()
    const away = join(mkdtempSync(join(scratch, 'away-')), 'bundle.mjs')
    writeFileSync(away, code)
    const told = run(away)
    expect(told).toMatchObject({ code: 'SHOAL_ADDON_NOT_LOADED', attempts: [{ step: 'package' }] })
    expect(advice(told)).toContain('leave @shoal/* out of the bundle, and install them')
    writeFileSync(join(project, 'bundle.mjs'), code)
    expect(run(join(project, 'bundle.mjs'))).toEqual({ bytes: 8 })
    // The addon of another processor, as if installed on another machine.
    const other = process.arch === 'x64' ? { name: 'arm64', code: 183 } : { name: 'x64', code: 62 }
    const bytes = readFileSync(addon)
    bytes.writeUInt16LE(other.code, 18)
    writeFileSync(join(away, '..', 'shoal_ffi.node'), bytes)
    const elsewhere = run(away)
    const outcome = `built for ${other.name}, and this Node.js for ${process.arch}`
    expect(elsewhere.attempts).toMatchObject([{ step: 'package' }, { step: 'bundle', outcome }])
    expect(advice(elsewhere)).toContain(`copy shoal_ffi.node of @shoal/ffi-${platform} beside the bundle`)
  })

  test('of another version causes an error with that reason', () => {
    const bytes = readFileSync(addon)
    const at = bytes.indexOf('guardExit')
    expect(at).toBeGreaterThan(0)
    bytes.write('formerly', at)
    writeFileSync(addon, bytes)
    const told = use()
    expect(told.attempts?.[0]?.outcome).toMatch(/guardExit is not a function/)
    expect(advice(told)).toContain('The addon is of another version than @shoal/ffi: install both anew.')
  })

  test('works in two copies in one process, with separate memory and threads', () => {
    const copies = ['a', 'b'].map((name) => {
      const at = join(project, name)
      install(at)
      expect(existsSync(join(at, 'node_modules/@shoal/ffi/dist/index.js'))).toBe(true)
      return JSON.stringify(join(at, 'node_modules/@shoal/ffi/dist/index.js'))
    })
    const program = join(project, 'both.mjs')
    writeFileSync(
      program,
      `const copies = [await import(${copies[0]}), await import(${copies[1]})]
       let bytes = 0
       for (const { NativeMemory, createLane, offThread } of copies) {
         const memory = NativeMemory.allocate(24)
         const lane = createLane()
         await offThread({ lane }, () => {})
         lane.dispose()
         bytes += memory.byteLength
       }
       console.log(JSON.stringify({ bytes }))`,
    )
    expect(run(program)).toEqual({ bytes: 48 })
  })
})
