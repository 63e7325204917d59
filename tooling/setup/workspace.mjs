// Where things are, and how this folder's scripts run commands and report failures.
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
/** Everything the set-up keeps between runs; goes away with node_modules. */
export const cacheFolder = join(root, 'node_modules', '.cache', 'shoal')
export const manifest = readJson(join(root, 'package.json'))

/** An error whose message is all the user needs; printed without a stack. */
export class SetupError extends Error {}

export function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** The environment of every command started here: quiet, and with `folders` in front of PATH. */
export function commandEnvironment(folders = [], extra = {}) {
  return {
    ...process.env,
    npm_config_update_notifier: 'false',
    TURBO_TELEMETRY_DISABLED: '1',
    DO_NOT_TRACK: '1',
    ...extra,
    PATH: [...folders, process.env.PATH].join(delimiter),
  }
}

/**
 * The same environment for what connects to nothing: where a variable names certificates, each Node.js reads those and
 * all that it has when it starts, which takes a tenth of a second.
 */
export function offline(environment) {
  const { NODE_EXTRA_CA_CERTS: _, ...others } = environment
  return others
}

/** Runs a command with its output shown. Returns its exit status; a command that cannot start is an error. */
export function run(command, commandArguments, options = {}) {
  const result = spawnSync(command, commandArguments, { cwd: root, stdio: 'inherit', ...options })
  if (result.error) throw new SetupError(`${command} cannot be started: ${result.error.message}`)
  return result.status ?? 1
}

/** Runs a command with its output kept, and throws with that output when it fails. */
export function capture(command, commandArguments, options = {}) {
  const result = spawnSync(command, commandArguments, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28, ...options })
  if (result.error) throw new SetupError(`${command} cannot be started: ${result.error.message}`)
  if (result.status !== 0) {
    throw failure(command, commandArguments, result.status ?? result.signal, result.stdout, result.stderr)
  }
  return result.stdout
}

/** The same, while others run. */
export function captureBeside(command, commandArguments, options = {}) {
  return new Promise((resolve, reject) => {
    const all = { cwd: root, maxBuffer: 1 << 28, ...options }
    execFile(command, commandArguments, all, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else if (typeof error.code === 'string') {
        reject(new SetupError(`${command} cannot be started: ${error.message}`))
      } else reject(failure(command, commandArguments, error.code ?? error.signal, stdout, stderr))
    })
  })
}

function failure(command, commandArguments, status, stdout, stderr) {
  const output = `${stdout}${stderr}`.trim()
  return new SetupError(`${command} ${commandArguments.join(' ')} failed with status ${status}:\n${output}`)
}

/** Runs `main`, prints a SetupError as its message alone, and exits with the status `main` returns. */
export async function runMain(main) {
  try {
    process.exitCode = (await main()) ?? 0
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    process.stderr.write(`\n${error.message}\n`)
    process.exitCode = 1
  }
}
