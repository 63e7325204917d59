import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Series, series } from '../statistics.js'
import { isTrial, takeRounds } from '../turns.js'

/** A package without content, to measure the cost of any import. */
export const emptyPackage = 'an empty package'

const startsInRound = 5

/**
 * Milliseconds of whole processes: of an empty ES module, and the additional time of a module that imports a package.
 */
export interface Starts {
  readonly bare: Series
  readonly imports: Readonly<Record<string, Series>>
}

/** Starts an empty module, a module per package and one for an empty package, alternating. */
export async function measureStarts(packages: readonly string[], rounds: number): Promise<Starts> {
  const here = fileURLToPath(new URL('.', import.meta.url))
  const folder = mkdtempSync(join(tmpdir(), 'shoal-starts-'))
  try {
    const starts = isTrial(rounds) ? 1 : startsInRound
    makeEmptyPackage(join(folder, 'node_modules', 'empty'))
    const runs = {
      bare: () => startOf('', here, starts),
      [emptyPackage]: () => startOf("import 'empty'", folder, starts),
      ...Object.fromEntries(packages.map((name) => [name, () => startOf(`import '${name}'`, here, starts)])),
    }
    const { bare = [], ...others } = await takeRounds(runs, rounds)
    const above = (times: readonly number[]): Series =>
      series(times.map((time, round) => time - (bare[round] ?? Number.NaN)))
    const imports = Object.entries(others).map(([name, times]) => [name, above(times)])
    return { bare: series(bare), imports: Object.fromEntries(imports) as Record<string, Series> }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function makeEmptyPackage(folder: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'empty', type: 'module', exports: './index.js' }))
  writeFileSync(join(folder, 'index.js'), 'export {}\n')
}

/**
 * Milliseconds that Node takes to start, run an ES module and end. Takes the minimum of several starts, because
 * disturbances only make a start slower.
 */
function startOf(program: string, folder: string, starts: number): number {
  let least = Number.POSITIVE_INFINITY
  for (let start = 0; start < starts; start += 1) {
    const before = performance.now()
    execFileSync(process.execPath, ['--input-type=module', '--eval', program], { cwd: folder })
    least = Math.min(least, performance.now() - before)
  }
  return least
}
