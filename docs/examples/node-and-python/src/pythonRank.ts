import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { UniqueId } from '@shoal/nccl'

const script = fileURLToPath(new URL('../python/rank.py', import.meta.url))

/** What the other rank has to know. */
export interface Job {
  readonly id: UniqueId
  readonly elements: number
  readonly seed: number
  /** Files of the libraries that this process uses. */
  readonly cuda: string
  readonly nccl: string
}

/** The rank that is a Python program, with CuPy where that is installed. */
export class PythonRank {
  /** Fires if Python ends before its part is done, so that no rank waits for it forever. */
  readonly gone: AbortSignal
  /** Its exit status. */
  readonly end: Promise<number | null>

  private constructor(gone: AbortSignal, end: Promise<number | null>) {
    this.gone = gone
    this.end = end
  }

  static start(job: Job): PythonRank {
    const python = process.env['PYTHON'] || 'python3'
    const child = spawn(python, ['-B', script], { stdio: ['pipe', 'inherit', 'inherit'] })
    const gone = new AbortController()
    const end = new Promise<number | null>((resolve) => {
      child.once('error', (error) => {
        gone.abort(new Error(`${python} does not start: ${error.message}`))
        resolve(null)
      })
      child.once('exit', (status) => {
        if (status !== 0) gone.abort(new Error(`Python ended with status ${status}`))
        resolve(status)
      })
    })
    // If Python does not start, writing fails, and the child's `error` event reports why.
    child.stdin.on('error', () => undefined)
    child.stdin.end(`${JSON.stringify({ ...job, id: job.id.toString() })}\n`)
    return new PythonRank(gone.signal, end)
  }
}
