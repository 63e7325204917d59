// Child processes with time limits, several in parallel.
import { spawn } from 'node:child_process'

export interface Ended {
  readonly ok: boolean
  /** set on failure: the exit status or signal, and the end of the output */
  readonly problem?: string
}

/** Runs a program until it ends, and kills it at the time limit. */
export function runProgram(
  file: string,
  programArguments: readonly string[],
  options: { seconds: number; environment?: NodeJS.ProcessEnv },
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(file, programArguments, {
      env: options.environment ?? process.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    let timedOut = false
    const keep = (chunk: Buffer): void => {
      output = (output + String(chunk)).slice(-4000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    const timer = setTimeout(() => {
      timedOut = true
      child.kill('SIGKILL')
    }, options.seconds * 1000)
    child.on('error', (error) => {
      clearTimeout(timer)
      resolve({ ok: false, problem: error.message })
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) return resolve({ ok: true })
      const how = timedOut
        ? `still running after ${options.seconds} s`
        : signal
          ? `killed by ${signal}`
          : `status ${code}`
      resolve({ ok: false, problem: output.trim() === '' ? how : `${how}: ${output.trim()}` })
    })
  })
}

/** Runs tasks, `width` at a time. Returns their results in order. */
export async function inParallel<T>(width: number, tasks: readonly (() => Promise<T>)[]): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < tasks.length) {
      const index = next++
      results[index] = await (tasks[index] as () => Promise<T>)()
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, tasks.length) }, lane))
  return results
}
