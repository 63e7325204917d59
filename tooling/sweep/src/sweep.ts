// The sweep: builds the C++ programs, runs every group on both sides, and compares.
import { mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findHeaders, headerVersion, productOf } from '@shoal/bindgen/dist/parse/headers.js'
import { compileProgram } from '@shoal/bindgen/dist/proof/compile.js'
import { type Ended, inParallel, runProgram } from '@shoal/bindgen/dist/proof/processes.js'
import type { LibraryName } from '@shoal/bindgen/dist/spec/types.js'
import { type Answers, readAnswers } from './answers.js'
import { compareGroup, type GroupReport, noCounts } from './compare.js'
import { programSource } from './cpp.js'
import { groupsOf } from './list.js'
import type { Spec } from './spec.js'
import { describeStep, type Group } from './steps.js'
import { runWorker, type Subject, type Subjects, siteFolders } from './subjects.js'

const nativeFolder = fileURLToPath(new URL('../native', import.meta.url))

export type StreamMode = 'legacy' | 'per-thread'

/** Groups that run again with per-thread default streams, because their functions have variants for them. */
const perThreadGroups = /-(streams|pointers|graphs)$/

export interface SweepOptions {
  readonly specs: ReadonlyMap<LibraryName, Spec>
  readonly specFolder: string
  readonly kernels: string
  readonly work: string
  /** parts of names: a group runs if its name contains one of them */
  readonly groups: readonly string[]
}

export interface GroupResult extends GroupReport {
  readonly library: LibraryName
  readonly version: string | null
  readonly mode: StreamMode
  readonly group: string
  /** how a side crashed or failed to start, and at which question */
  readonly failure?: string
  /** why hardware may leave questions of the group unasked */
  readonly optional?: string
  /** why the group did not run */
  readonly notRun?: string
}

interface Unit {
  readonly subject: Subject
  readonly spec: Spec
  readonly mode: StreamMode
  readonly groups: readonly Group[]
  readonly folder: string
}

/** Runs the sweep on all subjects. */
export async function sweep(subjects: Subjects, options: SweepOptions): Promise<GroupResult[]> {
  const width = Math.max(2, Math.min(6, Math.floor(availableParallelism() / 2)))
  const folders = siteFolders()
  const units = subjects.found.flatMap((subject, index) => unitsOf(subject, index, options))
  const programs = await inParallel(
    width,
    units.map((unit) => () => build(unit, folders)),
  )
  const tasks = units.flatMap((unit, index) =>
    unit.groups.map(
      (group) => () => runGroup(unit, group, programs[index]?.get(group.name) as Program, subjects.devices, options),
    ),
  )
  return inParallel(width, tasks)
}

function unitsOf(subject: Subject, index: number, { specs, work, groups: wanted }: SweepOptions): Unit[] {
  const spec = specs.get(subject.library)
  if (spec === undefined) return []
  const groups = groupsOf(spec).filter(({ name }) => wanted.some((part) => name.includes(part)))
  const again = groups.filter(({ name }) => perThreadGroups.test(name))
  const unit = (mode: StreamMode, chosen: readonly Group[]): Unit => {
    const folder = join(work, `${index}-${subject.library}-${mode}`)
    mkdirSync(folder, { recursive: true })
    return { subject, spec, mode, groups: chosen, folder }
  }
  return [
    ...(groups.length > 0 ? [unit('legacy', groups)] : []),
    ...(again.length > 0 ? [unit('per-thread', again)] : []),
  ]
}

type Program = { readonly file: string } | { readonly problem: string }

/**
 * Builds the C++ programs: one for all groups. If it does not compile, each group gets its own, so that only the group
 * with the problem is lost.
 */
async function build(unit: Unit, folders: readonly string[]): Promise<ReadonlyMap<string, Program>> {
  const whole = await compile(unit, unit.groups, 'program', folders)
  const programs = new Map<string, Program>()
  for (const group of unit.groups) {
    const alone = 'problem' in whole && whole.isCode
    programs.set(group.name, alone ? await compile(unit, [group], `program-${group.name}`, folders) : whole)
  }
  return programs
}

async function compile(
  { subject, spec, mode, folder }: Unit,
  groups: readonly Group[],
  name: string,
  sitePackages: readonly string[],
): Promise<Program & { readonly isCode?: true }> {
  const headers = findHeaders({ library: subject.path, sitePackages })
  const include = headers[productOf(subject.library)]
  if (include === undefined) return { problem: `no header of ${subject.library} was found` }
  const version = headerVersion(subject.library, include)
  if (Number.isNaN(version)) return { problem: `the header in ${include} does not tell its version` }
  // All other headers include CUDA's.
  const includes = [include, ...(headers.cuda ? [headers.cuda] : []), nativeFolder]
  const flags = mode === 'per-thread' ? ['-DCUDA_API_PER_THREAD_DEFAULT_STREAM'] : []
  try {
    return { file: await compileProgram(folder, name, programSource(spec, groups, version), includes, flags) }
  } catch (error) {
    return { problem: `the C++ program does not compile: ${(error as Error).message}`, isCode: true }
  }
}

async function runGroup(
  { subject, spec, mode, folder }: Unit,
  group: Group,
  program: Program,
  devices: number,
  options: SweepOptions,
): Promise<GroupResult> {
  const base = {
    library: subject.library,
    version: subject.version,
    mode,
    group: group.name,
    ...(group.optional === undefined ? {} : { optional: group.optional }),
  }
  const stopped = { ...base, counts: noCounts, findings: [] }
  if ('problem' in program) return { ...stopped, failure: program.problem }
  if (devices < group.devices) return { ...stopped, notRun: `needs ${group.devices} devices, there are ${devices}` }
  const environment = { ...subject.environment, SHOAL_STREAM_MODE: mode }
  const file = (side: string) => join(folder, `${group.name}.${side}.jsonl`)
  const theirs = await runProgram(program.file, [subject.path, options.kernels, group.name, file('cpp')], {
    seconds: 30,
    environment: { ...process.env, ...environment },
  })
  const question = ['--library', subject.library, '--group', group.name, '--spec', options.specFolder]
  const task = ['ask', ...question, '--kernels', options.kernels, '--out', file('shoal')]
  const ours = await runWorker(task, 30, environment)
  const [answers, wanted] = [readAnswers(file('shoal')), readAnswers(file('cpp'))]
  const failure = [describeEnd('Shoal', ours, group, answers), describeEnd('C++', theirs, group, wanted)]
    .filter((text) => text !== undefined)
    .join('; ')
  return { ...base, ...compareGroup(spec, group, answers, wanted), ...(failure === '' ? {} : { failure }) }
}

function describeEnd(side: string, ended: Ended, group: Group, { last, complete }: Answers): string | undefined {
  if (ended.ok && complete) return undefined
  const step = last === undefined ? undefined : group.steps[last]
  const during = step === undefined ? 'before the first question' : `after or during ${describeStep(step)}`
  return `${side} ended ${during} (${ended.problem ?? 'without its last line'})`
}
