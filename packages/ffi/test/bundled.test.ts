import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

const scratch = scratchFolder()
const packageFolder = fileURLToPath(new URL('..', import.meta.url))
const addon = join(packageFolder, 'prebuilds', `${process.platform}-${process.arch}`, 'shoal_ffi.node')
const program = `import { NativeMemory } from '@shoal/ffi'
  try { console.log(NativeMemory.allocate(8).byteLength) } catch (error) { console.log(error.name, error.message) }`

/** Bundles the program and the packages into one file. `url` replaces `import.meta.url`. */
async function bundle(folder: string, format: 'esm' | 'cjs', url: string | undefined): Promise<string> {
  const file = join(folder, `bundle.${format === 'esm' ? 'mjs' : 'cjs'}`)
  const built = await rolldown({
    input: 'program',
    platform: 'node',
    transform: { define: url === undefined ? {} : { 'import.meta.url': url } },
    plugins: [
      {
        name: 'program',
        resolveId: (id) => ({ program: 'program', '@shoal/ffi': join(packageFolder, 'dist/index.js') })[id] ?? null,
        load: (id) => (id === 'program' ? program : null),
      },
    ],
  })
  await built.write({ file, format })
  await built.close()
  return file
}

function run(file: string): string {
  const env = { ...process.env, SHOAL_FFI_ADDON: '', SHOAL_FFI_ENGINE: '', NODE_PATH: '' }
  return spawnSync(process.execPath, [file], { encoding: 'utf8', env, cwd: packageFolder }).stdout
}

test.each([
  ['ES modules', 'esm', undefined],
  ['CommonJS', 'cjs', undefined],
  ['CommonJS of a bundler that leaves nothing', 'cjs', 'undefined'],
  ['a bundler that writes where it was built', 'cjs', '"file:///built/elsewhere/main.js"'],
  ['a bundler that writes a number', 'esm', '483'],
] as const)(
  'a bundle of %s finds the addon in its packages or next to the bundle, or reports it as missing',
  async (name, format, url) => {
    const folder = join(scratch, name)
    const file = await bundle(folder, format, url)
    const alone = run(file)
    expect(alone).toMatch(/^AddonLoadError Cannot load the native addon/)
    expect(alone).toContain(`copy shoal_ffi.node of @shoal/ffi-${process.platform}-${process.arch} beside the bundle`)
    mkdirSync(join(folder, 'node_modules/@shoal'), { recursive: true })
    symlinkSync(packageFolder, join(folder, 'node_modules/@shoal/ffi'))
    expect(run(file)).toBe('8\n')

    const moved = join(scratch, 'moved', name, basename(file))
    cpSync(file, moved)
    expect(run(moved)).toContain('AddonLoadError')
    cpSync(addon, join(moved, '../shoal_ffi.node'))
    expect(run(moved)).toBe('8\n')
  },
)
