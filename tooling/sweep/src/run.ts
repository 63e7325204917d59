#!/usr/bin/env node
/**
 * Checks the raw packages against real libraries in two ways: which functions resolve, and what harmless questions
 * answer.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { deviceLibraryNames, hostLibraryNames, type LibraryName } from '@shoal/bindgen/dist/spec/types.js'
import { cornersOf } from './askCorners.js'
import { resolveReport, sweepReport } from './report.js'
import type { Resolution } from './resolve.js'
import { readSpecs } from './spec.js'
import { findSubjects, runWorker, type Subject } from './subjects.js'
import { type StreamMode, sweep } from './sweep.js'

const usage = `node run.js resolve|sweep|corners [--json FILE] [--spec FOLDER] [--kernels FOLDER] [--libraries ID,…] [--work FOLDER] [--groups TEXT,…]
  resolve               looks up every function of the spec, in both stream modes
  sweep                 asks every harmless question from C++ and through Shoal, and compares; needs g++ and the headers
  corners               asks the corners of the APIs from C++, and compares with what H200s answered; needs g++ and two GPUs
  --include FOLDER      headers of the software device for corners (default: those of the repository)
  --spec FOLDER         the spec (default: that of the repository)
  --kernels FOLDER      compiled test kernels (default: SHOAL_KERNELS)
  --libraries ID,…      of ${hostLibraryNames.join(', ')} (default: all)
  --groups TEXT,…       only groups of the sweep whose name contains one of these
  --work FOLDER         where programs and answers are kept (default: a folder that goes afterwards)
With SHOAL_EXPECT_GPU=1 it fails where there is no GPU, where a library is not found, and where a question cannot be asked.`

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: text,
      spec: text,
      kernels: text,
      libraries: text,
      work: text,
      groups: text,
      include: text,
      help: { type: 'boolean' },
    },
  })
  const [job] = positionals
  if (values.help === true || !['resolve', 'sweep', 'corners'].includes(job ?? '')) {
    console.log(usage)
    return values.help === true ? 0 : 2
  }
  const specFolder = values.spec ?? fileURLToPath(new URL('../../bindgen/spec', import.meta.url))
  const specs = readSpecs(specFolder)
  // The sweep has no questions for libraries without a software twin.
  const answering: readonly LibraryName[] = job === 'resolve' ? hostLibraryNames : deviceLibraryNames
  const wanted = values.libraries?.split(',') ?? answering.filter((id) => specs.has(id))
  const unknown = wanted.filter((id) => !specs.has(id as LibraryName))
  if (unknown.length > 0) throw new Error(`no spec of ${unknown.join(', ')} in ${specFolder}`)
  const work = values.work ?? mkdtempSync(join(tmpdir(), 'shoal-sweep-'))
  mkdirSync(work, { recursive: true })
  try {
    const subjects = await findSubjects(wanted as LibraryName[], work)
    const expectGpu = process.env['SHOAL_EXPECT_GPU'] === '1'
    const software = process.env['SHOAL_DEVICE'] === 'sim'
    const context = { subjects, expectGpu, software }
    if (job === 'corners') {
      const include = values.include ?? fileURLToPath(new URL('../../../packages/sim/native/include', import.meta.url))
      const { ok, lines, data } = await cornersOf(subjects, { include, folder: work, isHardware: !software })
      for (const line of lines) console.log(line)
      if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify({ corners: data }, undefined, 1)}\n`)
      return ok ? 0 : 1
    }
    const report =
      job === 'resolve'
        ? resolveReport(await resolveEverywhere(subjects.found, specFolder, work), context)
        : sweepReport(
            await sweep(subjects, {
              specs,
              specFolder,
              kernels: values.kernels ?? process.env['SHOAL_KERNELS'] ?? '',
              work,
              groups: values.groups?.split(',') ?? [''],
            }),
            context,
          )
    for (const line of report.lines) console.log(line)
    if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report.data, undefined, 1)}\n`)
    return report.ok ? 0 : 1
  } finally {
    if (values.work === undefined) rmSync(work, { recursive: true, force: true })
  }
}

/** Resolves every subject in both stream modes, each in a separate process. NCCL and NVSHMEM have only one mode. */
async function resolveEverywhere(subjects: readonly Subject[], specFolder: string, work: string) {
  const results: { subject: Subject; mode: StreamMode; resolutions: Resolution[]; failure?: string }[] = []
  for (const subject of subjects) {
    const modes: StreamMode[] = ['driver', 'runtime'].includes(subject.library) ? ['legacy', 'per-thread'] : ['legacy']
    for (const mode of modes) {
      const out = join(work, `resolve-${results.length}.json`)
      const task = ['resolve', '--library', subject.library, '--spec', specFolder, '--out', out]
      const ended = await runWorker(task, 60, { ...subject.environment, SHOAL_STREAM_MODE: mode })
      const resolutions = ended.ok ? (JSON.parse(readFileSync(out, 'utf8')) as Resolution[]) : []
      results.push({ subject, mode, resolutions, ...(ended.ok ? {} : { failure: ended.problem ?? 'failed' }) })
    }
  }
  return results
}

process.exitCode = await main()
