import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type Mutant, mutated } from './mutant.js'
import type { Step, Subject } from './subjects.js'

/** How a run of tests ended. */
export interface Verdict {
  readonly outcome: 'passed' | 'failed' | 'timeout'
  /** The first test that failed. */
  readonly by?: string
  /** How much of its time limit the slowest run took, from 0 to 1. */
  readonly share: number
}

/** What vitest writes with `--reporter=json`. */
interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly startTime: number
    readonly endTime: number
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

/** Seconds that the original needs for each file of tests that it passes; the others prove nothing. */
type Baseline = Map<string, number>

/** A copy of the workspace, with everything built, in which sources may be broken. */
export class Scratch {
  readonly root = mkdtempSync(join(tmpdir(), 'shoal-mutate-'))
  readonly #baselines = new Map<string, Baseline>()
  /** A file with a mutant in it, and what it was. */
  #broken: readonly [file: string, original: string] | undefined

  constructor(workspace: string) {
    // Some tests start processes of another user, who has to get in.
    chmodSync(this.root, 0o755)
    const left = ['.git', '.gpu', '.turbo', 'out']
    for (const entry of readdirSync(workspace)) {
      if (!left.includes(entry)) execFileSync('cp', ['-a', '--reflink=auto', join(workspace, entry), this.root])
    }
    mkdirSync(join(this.root, 'out'))
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true })
  }

  read(file: string): string {
    return readFileSync(join(this.root, file), 'utf8')
  }

  /** Builds a subject, with a mutant in it or as it is. False when it does not build. */
  build(subject: Subject, mutant?: Mutant): boolean {
    this.mend()
    if (mutant !== undefined) {
      const original = this.read(mutant.file)
      this.#broken = [mutant.file, original]
      writeFileSync(join(this.root, mutant.file), mutated(mutant, original))
    }
    const isBuilt = subject.build.every((step) => this.#run(step) === 0)
    // Tests compare generated sources with their spec: one that was mended would only show that it is another.
    if (mutant?.file.endsWith('.json') !== true) this.mend()
    return isBuilt
  }

  /** Puts back what a build has left broken. */
  mend(): void {
    if (this.#broken === undefined) return
    const [file, original] = this.#broken
    writeFileSync(join(this.root, file), original)
    this.#broken = undefined
  }

  /** Whether the compiler takes a mutant: what it refuses never gets to a test. */
  compiles(mutant: Mutant): boolean {
    const name = /^(packages\/[^/]+)\/src\//.exec(mutant.file)?.[1]
    if (name === undefined) return true
    const original = this.read(mutant.file)
    writeFileSync(join(this.root, mutant.file), mutated(mutant, original))
    try {
      return this.#run([name, process.execPath, '../../node_modules/typescript/bin/tsc', '--noEmit']) === 0
    } finally {
      writeFileSync(join(this.root, mutant.file), original)
    }
  }

  /** Whether it is known what the original needs for the tests in these folders. */
  knows(folders: readonly string[]): boolean {
    return folders.every((folder) => this.#baselines.has(folder))
  }

  /** Runs the tests in these folders with everything as it is. */
  learn(folders: readonly string[]): void {
    for (const folder of folders.filter((one) => !this.#baselines.has(one))) {
      const results = this.#vitest([folder], [], 3600).report?.testResults ?? []
      const broken = results.filter(({ status }) => status !== 'passed').map(({ name }) => name)
      for (const name of broken) console.log(`  left out, since the original fails: ${name.slice(this.root.length)}`)
      const sound = results.filter(({ status }) => status === 'passed')
      // Nothing could notice a fault then, and all would count as unseen.
      if (sound.length === 0) throw new Error(`the original passes no test of ${folder}`)
      this.#baselines.set(folder, new Map(sound.map((one) => [one.name, (one.endTime - one.startTime) / 1000])))
    }
  }

  /** Runs the tests in folders, as far as the original passes them; those first whose names are like the mutant's. */
  test(folders: readonly string[], mutant: Mutant): Verdict {
    const seconds = new Map(folders.flatMap((folder) => [...(this.#baselines.get(folder) ?? [])]))
    const wanted = basename(mutant.file).replace(/\..*$/, '').toLowerCase()
    const isNear = (file: string): boolean => basename(file).toLowerCase().includes(wanted)
    const files = [...seconds.keys()]
    const turns = [files.filter(isNear), files.filter((file) => !isNear(file))].filter((turn) => turn.length > 0)
    let share = 0
    for (const turn of turns) {
      let left = turn
      while (left.length > 0) {
        const usual = left.reduce((sum, file) => sum + (seconds.get(file) ?? 0), 0)
        const { verdict, failed } = this.#vitest(left, ['--bail=1'], 120 + 4 * usual)
        if (verdict.outcome !== 'passed' && (failed === undefined || !this.#isFickle(failed))) return verdict
        share = Math.max(share, verdict.share)
        if (failed === undefined) break
        left = left.filter((file) => file !== failed)
      }
    }
    return { outcome: 'passed', share }
  }

  /** Whether tests that failed pass when they are run once more, as on a machine that is too busy for them: they prove nothing from then on. */
  #isFickle(file: string): boolean {
    if (this.#vitest([file], ['--bail=1'], 600).verdict.outcome !== 'passed') return false
    console.log(`  left out, since it fails now and then: ${file.slice(this.root.length)}`)
    for (const known of this.#baselines.values()) known.delete(file)
    return true
  }

  #vitest(
    files: readonly string[],
    options: readonly string[],
    limit: number,
  ): { verdict: Verdict; report?: Report; failed?: string } {
    const output = join(this.root, 'out', 'vitest.json')
    rmSync(output, { force: true })
    const all = ['run', ...files, ...options, '--reporter=json', `--outputFile=${output}`]
    const started = performance.now()
    // `timeout` ends the whole group: workers of vitest, and what the tests started.
    const command = ['--signal=KILL', `${Math.ceil(limit)}`, join(this.root, 'node_modules/.bin/vitest'), ...all]
    const { status, signal, error } = spawnSync('timeout', command, { cwd: this.root, stdio: 'ignore' })
    if (error !== undefined) throw error
    const report = existsSync(output) ? (JSON.parse(readFileSync(output, 'utf8')) as Report) : undefined
    if (signal !== null) return { verdict: { outcome: 'timeout', share: 1 } }
    const failed = report?.testResults.find((file) => file.status !== 'passed')
    const test = failed?.assertionResults.find((one) => one.status === 'failed')
    const by = failed === undefined ? 'vitest itself' : `${basename(failed.name)} > ${test?.fullName ?? 'the file'}`
    const share = (performance.now() - started) / 1000 / limit
    const verdict: Verdict = status === 0 ? { outcome: 'passed', share } : { outcome: 'failed', by, share }
    return {
      verdict,
      ...(report === undefined ? {} : { report }),
      ...(failed === undefined || status === 0 ? {} : { failed: failed.name }),
    }
  }

  #run([folder, command, ...args]: Step): number {
    return spawnSync(command, args, { cwd: join(this.root, folder), stdio: 'ignore', timeout: 600_000 }).status ?? 1
  }
}
