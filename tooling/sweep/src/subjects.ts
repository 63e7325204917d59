// Which library files are looked at: the ones that Shoal finds, and NCCL's Python wheel beside the system's NCCL.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from './processes.js'
import { type LibraryId, libraryIds } from './spec.js'
import type { Probe } from './worker.js'

export const workerFile = fileURLToPath(new URL('./worker.js', import.meta.url))

/** A library file to look at. */
export interface Subject extends Probe {
  readonly library: LibraryId
  /** makes Shoal load this file */
  readonly environment: NodeJS.ProcessEnv
}

export interface Subjects {
  readonly found: readonly Subject[]
  readonly notFound: readonly { readonly library: LibraryId; readonly problem: string }[]
  readonly devices: number
}

/** Folders of Python packages; none where there is no Python. */
export function siteFolders(): string[] {
  const script = 'import json, sys; print(json.dumps([p for p in sys.path if p.endswith("-packages")]))'
  const result = spawnSync('python3', ['-c', script], { encoding: 'utf8' })
  return result.status === 0 ? (JSON.parse(result.stdout) as string[]) : []
}

export async function findSubjects(libraries: readonly LibraryId[], work: string): Promise<Subjects> {
  const found: Subject[] = []
  const notFound: { library: LibraryId; problem: string }[] = []
  const probe = async (library: LibraryId, environment: NodeJS.ProcessEnv): Promise<Subject | undefined> => {
    const out = join(work, `probe-${library}.json`)
    const all = { ...process.env, ...environment }
    const ended = await runProgram(process.execPath, [workerFile, 'probe', '--library', library, '--out', out], {
      seconds: 30,
      environment: all,
    })
    if (ended.ok) return { library, environment, ...(JSON.parse(readFileSync(out, 'utf8')) as Probe) }
    notFound.push({ library, problem: ended.problem ?? '' })
    return undefined
  }
  for (const library of libraryIds.filter((one) => libraries.includes(one))) {
    const subject = await probe(library, {})
    if (subject === undefined) continue
    found.push(subject)
    if (library !== 'nccl' || process.env['SHOAL_NCCL_LIBRARY']) continue
    for (const folder of siteFolders()) {
      const file = join(folder, 'nvidia/nccl/lib/libnccl.so.2')
      if (!existsSync(file) || realpathSync(file) === safeRealPath(subject.path)) continue
      const wheel = await probe('nccl', { SHOAL_NCCL_LIBRARY: file })
      if (wheel !== undefined) found.push(wheel)
    }
  }
  const driver = found.find(({ library }) => library === 'driver')
  return { found, notFound, devices: driver?.devices ?? 0 }
}

function safeRealPath(file: string): string {
  return existsSync(file) ? realpathSync(file) : file
}
