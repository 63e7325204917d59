// Builds the software device's tests of PTX instructions against this host's driver. Each kernel has one instruction
// with thousands of operands, and the results are compared with references. Each test is a process of its own, because
// some tests lose the context.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { driver } from '@shoal/cuda-sys/driver'

const sources = fileURLToPath(new URL('instructions/', import.meta.url))
const jsonFile = process.argv[2] === '--json' ? process.argv[3] : undefined
const compiler = process.env.CXX || 'g++'
const { path } = driver.load()
const isSoftware = driver.rawSymbol('shoalSimDescribe') !== undefined
/** The most seconds of a test. A test that hangs is stopped, and a lost context affects no other test. */
const secondsOfTest = 120

const folder = mkdtempSync(join(tmpdir(), 'shoal-instructions-'))
try {
  const programs = readdirSync(join(sources, 'test')).filter((name) => name.endsWith('_test.cc'))
  const tests = programs.flatMap((source) => run(source.slice(0, -3)))
  const count = (outcome) => tests.filter((test) => test.outcome === outcome).length
  const summary = { passed: count('ok'), failed: count('fail'), skipped: count('skip') }
  console.log(`${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped`)
  if (jsonFile !== undefined) {
    const cases = tests.map(({ program, ...test }) => ({ suite: program, ...test }))
    writeFileSync(jsonFile, `${JSON.stringify({ library: path, cases, summary }, undefined, 2)}\n`)
  }
  process.exitCode = summary.failed === 0 && summary.passed > 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function run(program) {
  const file = join(folder, program)
  const options = ['-std=c++17', '-O1', '-pthread', `-I${join(sources, 'include')}`, `-Wl,-rpath,${dirname(path)}`]
  execFileSync(compiler, [...options, '-o', file, join(sources, 'test', `${program}.cc`), path], { stdio: 'inherit' })
  const names = execFileSync(file, ['--list'], { encoding: 'utf8' }).split('\n').filter(Boolean)
  const environment = { ...process.env, ...(isSoftware ? {} : { SHOAL_TEST_HARDWARE: '1' }) }
  return names.map((name) => {
    const started = performance.now()
    const options = { encoding: 'utf8', env: environment, timeout: secondsOfTest * 1000, maxBuffer: 2 ** 26 }
    const { stdout, status, signal } = spawnSync(file, [name], options)
    const [, word, words] = /^(ok|skipped|FAILED) \w+(?:: (.*?))?\n\d+ passed/ms.exec(stdout) ?? []
    // The number of forms that this host's compiler does not accept.
    const note = /^\d+ of \d+ forms .*$/m.exec(stdout)?.[0]
    const outcome = status === 0 && word === 'ok' ? 'ok' : word === 'skipped' ? 'skip' : 'fail'
    const error = outcome === 'fail' ? (words ?? `ended with ${signal ?? status}: ${stdout.slice(-2000)}`) : undefined
    const reason = outcome === 'skip' ? words : undefined
    const milliseconds = Math.round(performance.now() - started)
    console.log(
      `${outcome.padEnd(4)} ${program}: ${name} (${milliseconds} ms)${words === undefined ? '' : `: ${words}`}${note === undefined ? '' : `; ${note}`}`,
    )
    return { program, name, outcome, milliseconds, error, reason, note }
  })
}
