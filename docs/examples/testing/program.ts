import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

export interface End {
  readonly code: number | null
  /** Its stdout. */
  readonly output: string
  /** Its stderr. */
  readonly errors: string
}

/** A program of an example, in a separate process. */
export interface Program {
  readonly child: ChildProcess
  readonly end: Promise<End>
  /** Resolves when the program has said this, fails when it ends before. */
  said(words: RegExp): Promise<void>
}

/** Starts a program on the software device, whatever the tests themselves run on. */
export function start(script: URL, commandLine: readonly string[] = [], environment: NodeJS.ProcessEnv = {}): Program {
  const env = {
    ...process.env,
    SHOAL_DEVICE: 'sim',
    SHOAL_EXPECT_GPU: '',
    SHOAL_CUDA_LIBRARY: '',
    SHOAL_NCCL_LIBRARY: '',
    SHOAL_NVSHMEM_LIBRARY: '',
    ...environment,
  }
  const words = [fileURLToPath(script), ...commandLine]
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let [output, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const end = new Promise<End>((resolve) => child.once('close', (code) => resolve({ code, output, errors })))
  const said = async (looked: RegExp): Promise<void> => {
    while (!looked.test(output)) {
      if (child.exitCode !== null) throw new Error(`${script} ended without saying ${looked}:\n${output}${errors}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  return { child, end, said }
}

/** Starts ranks of a program with `shoal run`, each with its own software device. */
export function startRanks(
  ranks: number,
  script: URL,
  commandLine: readonly string[] = [],
  options: readonly string[] = [],
): Program {
  const cli = createRequire(script).resolve('@shoal/cli')
  const shoal = pathToFileURL(join(dirname(cli), '..', 'bin', 'shoal.js'))
  const words = ['run', '-n', String(ranks), ...options, fileURLToPath(script), ...commandLine]
  return start(shoal, words, { SHOAL_SIM_DEVICES: String(ranks) })
}
