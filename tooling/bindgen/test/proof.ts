import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job, Report } from '../src/proof/job.js'
import { sysPackages } from '../src/proof/packages.js'
import { runProgram } from '../src/proof/processes.js'
import type { LibrarySpecFile } from '../src/spec/types.js'
import { root } from './environment.js'

const specFolder = join(root, 'tooling/bindgen/spec')
const child = join(root, 'tooling/bindgen/dist/proof/child.js')

/** The spec of every library. */
export const specs: readonly LibrarySpecFile[] = readdirSync(specFolder)
  .filter((file) => file.endsWith('.json'))
  .map((file) => JSON.parse(readFileSync(join(specFolder, file), 'utf8')) as LibrarySpecFile)

/** The reason why no native library can be compiled, or undefined. */
export function noCompiler(): string | undefined {
  if (process.platform !== 'linux') return 'the native library is made for Linux'
  try {
    execFileSync(process.env['CXX'] ?? 'g++', ['--version'], { stdio: 'pipe' })
    return undefined
  } catch {
    return 'no C++ compiler: install g++ or name one in CXX'
  }
}

/** Runs a job in a separate Node process. */
export async function runJob(folder: string, name: string, job: Omit<Job, 'root'>): Promise<Report> {
  if (!existsSync(child)) throw new Error(`${child} is not there: build tooling/bindgen`)
  const location = job.location ?? sysPackages[job.spec.library]
  const [jobFile, reportFile] = [join(folder, `${name}.job.json`), join(folder, `${name}.report.json`)]
  writeFileSync(jobFile, JSON.stringify({ ...job, root }))
  const { SHOAL_DEVICE: _, SHOAL_STREAM_MODE: __, ...inherited } = process.env
  const environment = {
    ...inherited,
    [location.environment]: job.recorder,
    SHOAL_FFI_ENGINE: job.engine === 'koffi block' ? 'koffi' : 'addon',
    SHOAL_STREAM_MODE: job.perThread ? 'per-thread' : 'legacy',
  }
  const { ok, problem } = await runProgram(process.execPath, [child, jobFile, reportFile], {
    seconds: 600,
    environment,
  })
  if (!ok) throw new Error(`${name}: ${problem}`)
  return JSON.parse(readFileSync(reportFile, 'utf8')) as Report
}
