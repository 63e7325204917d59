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

/** What came of the tests of a fault; `undefined` when all of them passed. */
export interface Verdict {
  readonly outcome: 'noticed' | 'late' | 'unclear' | undefined
  /** The first test that failed. */
  readonly by?: string
  /** There was no test that the original passes. */
  readonly isUnasked?: true
}

/** How a run of vitest ended. */
interface Run {
  readonly outcome: 'passed' | 'failed' | 'timeout'
  /** The file that failed, and its first test that did. */
  readonly failed?: string
  readonly test?: string
  /** How much of its time limit it took, from 0 to 1. */
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

/** Files of tests that take longer than this, in seconds, are asked when no other has noticed. */
const long = 5

/** A copy of the workspace, with everything built, in which sources may be broken. */
export class Scratch {
  readonly root = mkdtempSync(join(tmpdir(), 'shoal-mutate-'))
  /** Whether a test, or a file of them, proves anything: the original passes it, and it fails again when it failed. */
  readonly #isSound = new Map<string, boolean>()
  /** Seconds that a file of tests took when it last passed. */
  readonly #seconds = new Map<string, number>()
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
    // The source stays broken while the tests run: some import it, some make native code anew or compare generated
    // sources with their spec.
    return subject.build.every((step) => this.#run(step) === 0)
  }

  /** Puts back the source that a build has broken. */
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

  /**
   * Runs the tests in folders on a subject that was built with a mutant: first those whose names are like the mutant's,
   * last those that take long.
   */
  test(subject: Subject, folders: readonly string[], mutant: Mutant): Verdict {
    const wanted = basename(mutant.file).replace(/\..*$/, '').toLowerCase()
    const rank = (file: string): number => {
      if (basename(file).toLowerCase().includes(wanted)) return 0
      return (this.#seconds.get(file) ?? 0) > long ? 2 : 1
    }
    const files = folders
      .flatMap((folder) => testsIn(join(this.root, folder)))
      .filter((file) => !subject.leftOut?.includes(basename(file)) && this.#isSound.get(file) !== false)
    if (files.length === 0) return { outcome: undefined, isUnasked: true }
    for (const turn of [0, 1, 2]) {
      let left = files.filter((file) => rank(file) === turn)
      while (left.length > 0) {
        const { outcome, failed, test } = this.#vitest(left)
        if (outcome === 'passed') break
        if (outcome === 'timeout') {
          // Where other work has made the machine slow, the original would not be in time either.
          this.build(subject)
          const original = this.#vitest(left)
          return { outcome: original.outcome !== 'timeout' && original.share < 0.5 ? 'late' : 'unclear' }
        }
        if (this.#proves(failed === undefined ? left : [failed], test, subject, mutant)) {
          const by = failed === undefined ? 'vitest itself' : `${basename(failed)} > ${test ?? 'the file'}`
          return { outcome: 'noticed', by }
        }
        left = failed === undefined ? [] : left.filter((file) => file !== failed)
      }
    }
    return { outcome: undefined }
  }

  /**
   * Whether what failed fails again, and passes on the original. Files with a test that fails there prove nothing from
   * then on.
   */
  #proves(files: readonly string[], test: string | undefined, subject: Subject, mutant: Mutant): boolean {
    // Alone it may pass, since others were not before it.
    const alone = test !== undefined && this.#vitest(files, test).outcome !== 'passed' ? test : undefined
    const key = `${files} ${alone}`
    if (alone === undefined && this.#vitest(files).outcome === 'passed') {
      // It may be the fault that comes and goes: the file is asked again about the next one.
      console.log(`  not counted, since it fails now and then: ${this.#short(files)}`)
      return false
    }
    if (this.#isSound.get(key) === true) return true
    this.build(subject)
    const isSound = this.#vitest(files, alone).outcome === 'passed'
    this.#isSound.set(key, isSound)
    if (isSound) return true
    this.build(subject, mutant)
    for (const file of files) this.#isSound.set(file, false)
    console.log(`  left out, since the original fails: ${this.#short(files)}`)
    return false
  }

  #short(files: readonly string[]): string {
    return files.map((file) => file.slice(this.root.length + 1)).join(', ')
  }

  /** Runs files of tests, or of one of them the test of a name. */
  #vitest(files: readonly string[], test?: string): Run {
    const output = join(this.root, 'out', 'vitest.json')
    rmSync(output, { force: true })
    const usual = files.reduce((sum, file) => sum + (this.#seconds.get(file) ?? long), 0)
    const limit = 4 * usual + (files.every((file) => this.#seconds.has(file)) ? 120 : 600)
    const chosen = test === undefined ? [] : ['--testNamePattern', `^${test.replaceAll(/[^\w ]/g, '.')}$`]
    const all = ['run', ...files, ...chosen, '--bail=1', '--reporter=json', `--outputFile=${output}`]
    const started = performance.now()
    // `timeout` ends the whole group: workers of vitest, and what the tests started.
    const command = ['--signal=KILL', `${Math.ceil(limit)}`, join(this.root, 'node_modules/.bin/vitest'), ...all]
    const { status, signal, error } = spawnSync('timeout', command, { cwd: this.root, stdio: 'ignore' })
    if (error !== undefined) throw error
    if (signal !== null) return { outcome: 'timeout', share: 1 }
    const share = (performance.now() - started) / 1000 / limit
    const results = existsSync(output) ? (JSON.parse(readFileSync(output, 'utf8')) as Report).testResults : []
    if (status === 0) {
      const hasRun = results.some((file) => file.assertionResults.some((one) => one.status === 'passed'))
      // A name that is not found leaves nothing to run.
      if (test !== undefined && !hasRun) return this.#vitest(files)
      if (test === undefined)
        for (const one of results) this.#seconds.set(one.name, (one.endTime - one.startTime) / 1000)
      return { outcome: 'passed', share }
    }
    const testOf = (file: Report['testResults'][number]) => file.assertionResults.find((one) => one.status === 'failed')
    const failed = results.find(testOf) ?? results.find((file) => file.status !== 'passed')
    if (failed === undefined) return { outcome: 'failed', share }
    const name = testOf(failed)?.fullName
    return { outcome: 'failed', failed: failed.name, ...(name === undefined ? {} : { test: name }), share }
  }

  #run([folder, command, ...args]: Step): number {
    return spawnSync(command, args, { cwd: join(this.root, folder), stdio: 'ignore', timeout: 600_000 }).status ?? 1
  }
}

function testsIn(folder: string): string[] {
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return all.filter((file) => file.endsWith('.test.ts')).map((file) => join(folder, file))
}
