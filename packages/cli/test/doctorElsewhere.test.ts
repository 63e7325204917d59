import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

const packages = fileURLToPath(new URL('../../', import.meta.url))
const scratch = scratchFolder()
const cache = join(scratch, 'cache/node_modules/@shoal')
const program = join(scratch, 'program')

/** Copies a package and its dependencies, as npx installs them. `@shoal/sim` is not one of them. */
function install(name: string, seen = new Set<string>()): void {
  if (seen.has(name)) return
  seen.add(name)
  const [from, to] = [join(packages, name), join(cache, name)]
  for (const part of ['package.json', 'bin', 'dist', 'prebuilds']) {
    if (!existsSync(join(from, part))) continue
    const isWanted = (file: string): boolean => !/\.d\.c?ts$/.test(file) && !file.includes('-arm64')
    cpSync(join(from, part), join(to, part), { recursive: true, filter: isWanted })
  }
  const { dependencies = {} } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'))
  for (const each of Object.keys(dependencies)) install(each.replace('@shoal/', ''), seen)
}

test('doctor and bench run by npx find the software device of the working directory', () => {
  install('cli')
  mkdirSync(join(program, 'node_modules/@shoal'), { recursive: true })
  const run = (...command: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(cache, 'cli/bin/shoal.js'), ...command], {
      cwd: program,
      encoding: 'utf8',
      env: { ...process.env, NODE_PATH: '', SHOAL_DEVICE: 'sim', SHOAL_SIM_FOLDER: '' },
    })
    return { status, output: stdout + stderr }
  }
  const bench = ['bench', 'all-reduce', '--max-bytes', '1K', '--iterations', '1']
  for (const command of [['doctor'], bench]) {
    expect(run(...command)).toEqual({ status: 1, output: expect.stringContaining('install @shoal/sim') })
  }
  symlinkSync(join(packages, 'sim'), join(program, 'node_modules/@shoal/sim'))
  for (const command of [['doctor'], bench]) {
    expect(run(...command)).toEqual({ status: 0, output: expect.stringMatching(/software device/i) })
  }
})
