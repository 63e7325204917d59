// Paths of the workspace, and how this folder's scripts run commands and report failures.
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
/** Holds everything that the set-up keeps between runs. Deleting node_modules deletes it. */
export const cacheFolder = join(root, 'node_modules', '.cache', 'shoal')
export const manifest = readJson(join(root, 'package.json'))

/** An error whose message tells the user everything. It is printed without a stack. */
export class SetupError extends Error {}

export function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** The environment of every command started here: quiet, and with `folders` first in PATH. */
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
 * The same environment for commands that do not connect to anything. If a variable names certificates, each Node.js
 * reads them and all of its own at start, which takes a tenth of a second.
 */
export function offline(environment) {
  const { NODE_EXTRA_CA_CERTS: _, ...others } = environment
  return others
}

/** Runs a command and shows its output. Returns its exit status. Throws if the command cannot start. */
export function run(command, commandArguments, options = {}) {
  const result = spawnSync(command, commandArguments, { cwd: root, stdio: 'inherit', ...options })
  if (result.error) throw new SetupError(`${command} cannot be started: ${result.error.message}`)
  return result.status ?? 1
}

/** Runs a command and returns its output. Throws with that output if the command fails. */
export function capture(command, commandArguments, options = {}) {
  const result = spawnSync(command, commandArguments, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28, ...options })
  if (result.error) throw new SetupError(`${command} cannot be started: ${result.error.message}`)
  if (result.status !== 0) {
    throw failure(command, commandArguments, result.status ?? result.signal, result.stdout, result.stderr)
  }
  return result.stdout
}

/** Does the same without blocking other work. */
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

/** Runs `main` and exits with the status that it returns. Prints a SetupError as its message alone. */
export async function runMain(main) {
  try {
    process.exitCode = (await main()) ?? 0
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    process.stderr.write(`\n${error.message}\n`)
    process.exitCode = 1
  }
}
