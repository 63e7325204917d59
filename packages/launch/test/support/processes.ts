import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach } from 'vitest'

/** The script of a rank. Its arguments select its actions. */
export const script: string = fileURLToPath(new URL('../fixtures/rank.mjs', import.meta.url))
export const children: ChildProcess[] = []
/** Folder for temporary files of the processes; each test has a separate one. */
export let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'shoal-launchers-'))
})

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly lines: Record<string, unknown>[]
  readonly errors: string
}

/** Returns the environment without the variables of a launcher around this test. */
function cleanEnvironment(more: Record<string, string>): NodeJS.ProcessEnv {
  const names = /^(?:SHOAL_|OMPI_|PMI|SLURM_|TORCHELASTIC|MASTER_|MPI_)|^(?:RANK|WORLD_SIZE|LOCAL_|GROUP_)/
  const kept = Object.entries(process.env).filter(([name]) => !names.test(name))
  return { ...Object.fromEntries(kept), TMPDIR: folder, XDG_RUNTIME_DIR: '', ...more }
}

export function start(file: string, commandLine: readonly string[], more: Record<string, string> = {}): Promise<End> {
  const child = spawn(file, commandLine, { env: cleanEnvironment(more), stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      const lines = output.split('\n').filter((line) => line.startsWith('{'))
      resolve({ code, signal, lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>), errors })
    })
  })
}

/** Starts one process per rank, with variables like those of a launcher. */
export function startRanks(
  worldSize: number,
  environment: (rank: number) => Record<string, string>,
  action = 'share',
): Promise<End[]> {
  return Promise.all(
    Array.from({ length: worldSize }, (_, rank) => start(process.execPath, [script, action], environment(rank))),
  )
}

/** Starts a silent server at a free port. */
export function holdPort(): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer((socket) => void socket.on('error', () => undefined).unref())
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve({ server, port: typeof address === 'object' && address !== null ? address.port : 0 })
    })
  })
}

export async function freePort(): Promise<number> {
  const { server, port } = await holdPort()
  await new Promise((resolve) => server.close(resolve))
  return port
}
