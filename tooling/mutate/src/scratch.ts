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

/** Result of the tests for a mutant. `outcome` is `undefined` if all tests passed. */
export interface Verdict {
  readonly outcome: 'noticed' | 'late' | 'unclear' | undefined
  /** The first test that failed. */
  readonly by?: string
  /** Set if the original passes none of the tests, so that no test could run. */
  readonly isUnasked?: true
}

/** How a run of vitest ended. */
interface Run {
  readonly outcome: 'passed' | 'failed' | 'timeout'
  /** The file that failed, and the first test in it that failed. */
  readonly failed?: string
  readonly test?: string
  /** Part of the time limit that the run took, from 0 to 1. */
  readonly share: number
}

/** Part of the output of vitest with `--reporter=json`. */
interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly startTime: number
    readonly endTime: number
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

/** Seconds. Test files that take longer run last, only if no other file has noticed the mutant. */
const long = 5

/** A copy of the built workspace, in which sources may be broken. */
export class Scratch {
  readonly root = mkdtempSync(join(tmpdir(), 'shoal-mutate-'))
  /** Maps a test or test file to whether its failures count: the original passes it, and its failure repeats. */
  readonly #isSound = new Map<string, boolean>()
  /** Seconds that each test file took when it last passed. */
  readonly #seconds = new Map<string, number>()
  /** The file that contains a mutant now, and its original text. */
  #broken: readonly [file: string, original: string] | undefined

  constructor(workspace: string) {
    // Some tests start processes as another user, and that user needs access to the folder.
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

  /** Builds a subject with a mutant, or the original. Returns false if the build fails. */
  build(subject: Subject, mutant?: Mutant): boolean {
    this.mend()
    if (mutant !== undefined) {
      const original = this.read(mutant.file)
      this.#broken = [mutant.file, original]
      writeFileSync(join(this.root, mutant.file), mutated(mutant, original))
    }
    // The source stays broken while the tests run, because some tests import the source, some rebuild native code and
    // some compare generated sources with their spec.
    return subject.build.every((step) => this.#run(step) === 0)
  }

  /** Restores the source that a build has broken. */
  mend(): void {
    if (this.#broken === undefined) return
    const [file, original] = this.#broken
    writeFileSync(join(this.root, file), original)
    this.#broken = undefined
  }

  /** Returns true if the TypeScript compiler accepts a mutant. A mutant that it rejects would never reach a test. */
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
   * Runs the tests in folders on a subject that was built with a mutant. Files whose names contain the name of the
   * mutated file run first, slow files last.
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
          // If other work has made the machine slow, the original would exceed the limit too.
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
   * Returns true if the failure repeats with the mutant and the original passes. If the original fails too, failures of
   * these files no longer count.
   */
  #proves(files: readonly string[], test: string | undefined, subject: Subject, mutant: Mutant): boolean {
    // The test may pass alone because its failure depends on the tests that ran before it.
    const alone = test !== undefined && this.#vitest(files, test).outcome !== 'passed' ? test : undefined
    const key = `${files} ${alone}`
    if (alone === undefined && this.#vitest(files).outcome === 'passed') {
      // The mutant itself may cause a failure that does not always happen, so the file runs again for the next mutant.
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

  /** Runs test files, or the test of this name in one of them. */
  #vitest(files: readonly string[], test?: string): Run {
    const output = join(this.root, 'out', 'vitest.json')
    rmSync(output, { force: true })
    const usual = files.reduce((sum, file) => sum + (this.#seconds.get(file) ?? long), 0)
    const limit = 4 * usual + (files.every((file) => this.#seconds.has(file)) ? 120 : 600)
    const chosen = test === undefined ? [] : ['--testNamePattern', `^${test.replaceAll(/[^\w ]/g, '.')}$`]
    const all = ['run', ...files, ...chosen, '--bail=1', '--reporter=json', `--outputFile=${output}`]
    const started = performance.now()
    // `timeout` kills the whole process group: the workers of vitest and the processes that tests started.
    const command = ['--signal=KILL', `${Math.ceil(limit)}`, join(this.root, 'node_modules/.bin/vitest'), ...all]
    const { status, signal, error } = spawnSync('timeout', command, { cwd: this.root, stdio: 'ignore' })
    if (error !== undefined) throw error
    if (signal !== null) return { outcome: 'timeout', share: 1 }
    const share = (performance.now() - started) / 1000 / limit
    const results = existsSync(output) ? (JSON.parse(readFileSync(output, 'utf8')) as Report).testResults : []
    if (status === 0) {
      const hasRun = results.some((file) => file.assertionResults.some((one) => one.status === 'passed'))
      // If vitest does not find a test of this name, it runs no test and succeeds.
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
