// `npm run demo`: builds only what the example needs, and runs it. The software device compiles while the packages are
// installed and bundled. The example does not use the PTX engine or NVSHMEM, so `npm test` builds those.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { installWorkspace, say } from './install.mjs'
import { capture, commandEnvironment, root, run, SetupError } from './workspace.mjs'

const demo = { name: '@shoal/example-all-reduce', folder: 'docs/examples/all-reduce' }
/** Milliseconds between two lines about the progress of the build. */
const interval = 5_000
const logs = mkdtempSync(join(tmpdir(), 'shoal-demo-'))

export async function runDemo(demoArguments) {
  const started = performance.now()
  const entry = join(root, demo.folder, 'dist/main.js')
  if (!existsSync(entry)) say('the first build takes a minute or two on two cores; later ones take seconds')
  const device = compile('software device', 'sim', ['first'])
  try {
    const pnpmFolder = installWorkspace()
    const jobs = [device, bundle(pnpmFolder), compile('addon', 'ffi', [])]
    const timer = setInterval(() => {
      const seconds = Math.round((performance.now() - started) / 1000)
      say(`${seconds} s: ${jobs.map((job) => job.progress()).join(', ')}`)
    }, interval)
    try {
      await Promise.all(jobs.map((job) => job.ended))
    } finally {
      clearInterval(timer)
      for (const { child } of jobs) child.kill()
    }
  } finally {
    device.child.kill()
    rmSync(logs, { recursive: true, force: true })
  }
  if (!existsSync(entry)) throw new SetupError(`${demo.name} was built but ${demo.folder}/dist/main.js is not there.`)
  return run(process.execPath, [entry, ...demoArguments])
}

/** Starts to compile a package's native part. */
function compile(name, folder, targets) {
  const make = ['-j', String(availableParallelism()), '-C', join(root, 'packages', folder, 'native'), ...targets]
  const count = (text) => text.match(/ -c /g)?.length ?? 0
  const wanted = count(capture('make', ['-n', ...make], { env: commandEnvironment() }))
  return start(name, 'make', make, [], (log) => `file ${count(log)} of ${wanted}`)
}

/** Starts to build the JavaScript of the packages that the example uses. */
function bundle(pnpmFolder) {
  const options = ['--output-logs=errors-only', '--no-update-notifier', '--ui=stream']
  const turbo = join(root, 'node_modules/.bin/turbo')
  return start(
    'packages',
    turbo,
    ['run', 'build', `--filter=${demo.name}...`, ...options],
    [pnpmFolder],
    () => 'under way',
  )
}

/** Starts a command that writes to a file, because no events are handled while the install blocks this thread. */
function start(name, command, commandArguments, folders, describe) {
  const file = join(logs, `${name}.txt`)
  const output = openSync(file, 'w')
  const stdio = ['ignore', output, output]
  const child = spawn(command, commandArguments, { cwd: root, env: commandEnvironment(folders), stdio })
  let isDone = false
  const ended = new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new SetupError(`${command} cannot be started: ${error.message}`)))
    child.once('exit', (status) => {
      isDone = true
      if (status === 0) resolve()
      else reject(new SetupError(`${readFileSync(file, 'utf8')}\nThe build of the ${name} failed; see above.`))
    })
  })
  ended.catch(() => {}) // the caller awaits all of them and reports the failure
  const progress = () => `${name} ${isDone ? 'done' : describe(readFileSync(file, 'utf8'))}`
  return { child, ended, progress }
}
