// Finds the library files to examine: the files that Shoal finds, and NCCL's Python wheel in addition to the system's
// NCCL.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sysPackages } from '@shoal/bindgen/dist/proof/packages.js'
import { type Ended, runProgram } from '@shoal/bindgen/dist/proof/processes.js'
import { hostLibraryNames, type LibraryName } from '@shoal/bindgen/dist/spec/types.js'
import type { Probe } from './worker.js'

const workerFile = fileURLToPath(new URL('./worker.js', import.meta.url))

/** Runs a task of `worker.ts` in a process of its own. */
export function runWorker(task: readonly string[], seconds: number, environment: NodeJS.ProcessEnv): Promise<Ended> {
  const options = { seconds, environment: { ...process.env, ...environment } }
  return runProgram(process.execPath, [workerFile, ...task], options)
}

/** A library file to examine. */
export interface Subject extends Probe {
  readonly library: LibraryName
  /** variables that make Shoal load this file */
  readonly environment: NodeJS.ProcessEnv
}

export interface Subjects {
  readonly found: readonly Subject[]
  readonly notFound: readonly { readonly library: LibraryName; readonly problem: string }[]
  readonly devices: number
}

/** Returns the folders of Python packages, or an empty list without Python. */
export function siteFolders(): string[] {
  const script = 'import json, sys; print(json.dumps([p for p in sys.path if p.endswith("-packages")]))'
  const result = spawnSync('python3', ['-c', script], { encoding: 'utf8' })
  return result.status === 0 ? (JSON.parse(result.stdout) as string[]) : []
}

/** Paths of the libraries in Python wheels, relative to a folder of packages. */
const wheels: Partial<Record<LibraryName, readonly string[]>> = {
  runtime: ['nvidia/cu13/lib/libcudart.so.13', 'nvidia/cuda_runtime/lib/libcudart.so.13'],
  nccl: ['nvidia/nccl/lib/libnccl.so.2'],
  nvshmem: ['nvidia/nvshmem/lib/libnvshmem_host.so.3'],
  cublas: ['nvidia/cu13/lib/libcublas.so.13'],
  cublasLt: ['nvidia/cu13/lib/libcublasLt.so.13'],
}

/**
 * Finds the files to examine: what Shoal finds by itself, and NCCL's wheel, which often has another version. If Shoal
 * finds nothing, it examines the wheels of a Python that Shoal does not know.
 */
export async function findSubjects(libraries: readonly LibraryName[], work: string): Promise<Subjects> {
  const found: Subject[] = []
  const notFound: { library: LibraryName; problem: string }[] = []
  const folders = siteFolders()
  for (const library of hostLibraryNames.filter((one) => libraries.includes(one))) {
    const first = await probe(library, {}, work)
    if (typeof first !== 'string') found.push(first)
    const wheel = wheels[library]
    const { environment: variable } = sysPackages[library]
    const named = Boolean(process.env[variable])
    if (wheel === undefined || named || (typeof first !== 'string' && library !== 'nccl')) {
      if (typeof first === 'string') notFound.push({ library, problem: first })
      continue
    }
    const files = folders.flatMap((folder) => wheel.map((file) => join(folder, file))).filter(existsSync)
    const others = files.filter((file) => typeof first === 'string' || realPath(file) !== realPath(first.path))
    const second = others[0] === undefined ? undefined : await probe(library, { [variable]: others[0] }, work)
    if (second !== undefined && typeof second !== 'string') found.push(second)
    else if (typeof first === 'string') notFound.push({ library, problem: second ?? first })
  }
  const driver = found.find(({ library }) => library === 'driver') ?? (await probe('driver', {}, work))
  return { found, notFound, devices: (typeof driver === 'string' ? undefined : driver.devices) ?? 0 }
}

/** Loads a library in a process of its own. Returns the problem as text if it does not load. */
async function probe(library: LibraryName, environment: NodeJS.ProcessEnv, work: string): Promise<Subject | string> {
  const out = join(work, `probe-${library}.json`)
  const ended = await runWorker(['probe', '--library', library, '--out', out], 30, environment)
  if (!ended.ok) return ended.problem ?? 'it cannot be loaded'
  return { library, environment, ...(JSON.parse(readFileSync(out, 'utf8')) as Probe) }
}

function realPath(file: string): string {
  return existsSync(file) ? realpathSync(file) : file
}
