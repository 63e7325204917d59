/**
 * Runs broken PTX on the software device: the program `ptx_hostile_test` of `packages/sim`, with more inputs than its
 * test.
 */
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { sanitizerFlags } from './model/sanitize.js'

const sources = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', 'packages', 'sim', 'native')

export const brokenPtx = {
  title: 'broken PTX: --count 100000, --seed N, --sanitize address, --last FILE for the input of a crash',
  async run(values: readonly string[]): Promise<number> {
    const options = {
      count: { type: 'string', default: '20000' },
      seed: { type: 'string' },
      sanitize: { type: 'string' },
      last: { type: 'string' },
    } as const
    const { count, seed, sanitize, last } = parseArgs({ args: [...values], options }).values
    const build = sanitize === undefined ? '../build' : `../build/${sanitize}`
    const program = join(build, 'test', 'ptx_hostile_test')
    const variables =
      sanitize === undefined
        ? []
        : [`BUILD=${build}`, `OUT=${build}/lib`, 'CXXFLAGS=-O1 -g', `SANITIZE=${sanitizerFlags[sanitize as 'address']}`]
    const run = (command: string, args: readonly string[], environment = {}): number =>
      spawnSync(command, args, { cwd: sources, stdio: 'inherit', env: { ...process.env, ...environment } }).status ?? 1
    const status = run('make', ['-s', `-j${availableParallelism()}`, program, ...variables])
    if (status !== 0) return status
    return run(join(sources, program), [], {
      SHOAL_FUZZ_COUNT: count,
      ...(seed === undefined ? {} : { SHOAL_FUZZ_SEED: seed }),
      ...(last === undefined ? {} : { SHOAL_FUZZ_LAST: last }),
    })
  },
}
