// What both jobs print and record, and when they fail.

import type { LibraryName } from '@shoal/bindgen/dist/spec/types.js'
import { type Counts, type Finding, noCounts, type Outcome } from './compare.js'
import type { Resolution } from './resolve.js'
import type { Subject, Subjects } from './subjects.js'
import type { GroupResult, StreamMode } from './sweep.js'

export interface Report {
  readonly ok: boolean
  readonly lines: readonly string[]
  /** kept with the results of a GPU host */
  readonly data: object
}

export interface ReportContext {
  readonly subjects: Subjects
  readonly expectGpu: boolean
  /** the software device has only some of the driver's functions */
  readonly software: boolean
}

/** Returns the problems that fail every run, whatever it asks. */
function problemsOf({ subjects, expectGpu, software }: ReportContext): string[] {
  const problems: string[] = []
  if (expectGpu && (software || subjects.devices === 0))
    problems.push('a GPU was expected (SHOAL_EXPECT_GPU=1) and none is in use')
  if (subjects.found.length === 0) problems.push('no library was found')
  if (expectGpu)
    for (const { library, problem } of subjects.notFound)
      problems.push(`${library} was not found: ${firstLine(problem)}`)
  return problems
}

function notFoundLines({ subjects }: ReportContext): string[] {
  return subjects.notFound.map(({ library, problem }) => `not found: ${library}: ${firstLine(problem)}`)
}

/** A library file, examined in one stream mode. */
interface Looked {
  readonly library: LibraryName
  readonly version: string | null
  readonly mode: StreamMode
}

export interface ResolveRow extends Looked {
  readonly functions: number
  readonly resolved: number
  readonly gated: number
  readonly missing: number
  readonly unexplained: number
  /** functions that resolve to the loader's address of the exported name */
  readonly exports: number
}

export function resolveReport(
  results: readonly { subject: Subject; mode: StreamMode; resolutions: readonly Resolution[]; failure?: string }[],
  context: ReportContext,
): Report {
  const problems = problemsOf(context)
  const rows: ResolveRow[] = []
  const notResolved: (Omit<Looked, 'mode'> & { outcome: string; reason: string; names: string[] })[] = []
  for (const { subject, mode, resolutions, failure } of results) {
    const { library, version } = subject
    if (failure !== undefined) problems.push(`${library} ${version ?? ''}, ${mode}: ${failure}`)
    const count = (outcome: string) => resolutions.filter((one) => one.outcome === outcome).length
    const unexplained = resolutions.filter((one) => one.unexplained)
    // The software device has only some functions. It is no driver.
    const isSoftware = subject.step === 'sim'
    if (!isSoftware)
      for (const { name, reason } of unexplained)
        problems.push(`${library} ${version ?? ''}, ${mode}: ${name}: ${reason}`)
    rows.push({
      library,
      version,
      mode,
      functions: resolutions.length,
      resolved: count('resolved'),
      gated: count('gated'),
      missing: count('missing'),
      unexplained: unexplained.length,
      exports: resolutions.filter((one) => one.isExport).length,
    })
    for (const { name, outcome, reason = '', unexplained: isUnexplained } of resolutions) {
      if (outcome === 'resolved' || (isSoftware && isUnexplained)) continue
      const kept = isUnexplained ? 'not in the library' : reason
      const same = notResolved.find(
        (one) => one.library === library && one.version === version && one.outcome === outcome && one.reason === kept,
      )
      if (same === undefined) notResolved.push({ library, version, outcome, reason: kept, names: [name] })
      else if (!same.names.includes(name)) same.names.push(name)
    }
  }
  const lines = rows.map(
    (row) =>
      `${row.library} ${row.version ?? ''} (${row.mode}): ${row.functions} functions, ${row.resolved} resolved, ` +
      `${row.gated} gated, ${row.missing} missing${row.unexplained > 0 ? ` (${row.unexplained} without a reason)` : ''}`,
  )
  for (const { library, outcome, reason, names } of notResolved)
    lines.push(`  ${library}, ${outcome}, ${reason}: ${shorten(names)}`)
  return finish(problems, [...lines, ...notFoundLines(context)], { resolve: rows, notResolved })
}

export function sweepReport(results: readonly GroupResult[], context: ReportContext): Report {
  const problems = problemsOf(context)
  const rows: (Looked & { groups: number; counts: Counts })[] = []
  const differences: (Pick<GroupResult, 'library' | 'mode' | 'group'> & Pick<Finding, 'question' | 'details'>)[] = []
  const natures = new Map<string, Set<string>>()
  const notRun: string[] = []
  for (const result of results) {
    const { library, version, mode, group, counts, failure, findings } = result
    let row = rows.find((one) => one.library === library && one.version === version && one.mode === mode)
    if (row === undefined) rows.push((row = { library, version, mode, groups: 0, counts: { ...noCounts } }))
    row.groups += result.notRun === undefined ? 1 : 0
    for (const outcome of Object.keys(counts) as Outcome[]) row.counts[outcome] += counts[outcome]
    const where = placeOf(result)
    if (failure !== undefined) problems.push(`${where}: ${failure}`)
    if (result.notRun !== undefined) notRun.push(`${where}: ${result.notRun}`)
    for (const { question, outcome, details } of findings) {
      if (outcome === 'different') differences.push({ library, mode, group, question, details })
      if (outcome === 'byNature')
        for (const detail of details) {
          const calls = natures.get(detail) ?? new Set<string>()
          natures.set(detail, calls.add(question.slice(0, question.indexOf('('))))
        }
      if (outcome === 'unasked' && context.expectGpu && result.optional === undefined)
        problems.push(`${where}: ${question} could not be asked: what it needs could not be made`)
    }
  }
  for (const one of differences) problems.push(`${placeOf(one)}: ${one.question}: ${one.details.join('; ')}`)
  const lines = rows.map(
    ({ library, version, mode, groups, counts }) =>
      `${library} ${version ?? ''} (${mode}): ${groups} groups, ${total(counts)} questions, ${counts.equal} equal, ` +
      `${counts.byNature} different by nature, ${counts.different} different, ${counts.absent} not in the library, ` +
      `${counts.unasked} could not be asked`,
  )
  lines.push(...notFoundLines(context), ...notRun.map((text) => `not run: ${text}`))
  const byNature = [...natures].map(([reason, calls]) => ({ reason, calls: [...calls] }))
  return finish(problems, lines, { sweep: rows, differences, byNature, notRun })
}

function placeOf({ group, mode }: Pick<GroupResult, 'group' | 'mode'>): string {
  return `${group}${mode === 'legacy' ? '' : `, ${mode}`}`
}

/** The most problems that are printed. A library that fails as a whole has thousands. */
const maximumProblems = 50

function finish(problems: readonly string[], lines: readonly string[], data: object): Report {
  const rest = problems.length - maximumProblems
  const shown = problems.slice(0, maximumProblems).map((problem) => `FAIL: ${problem}`)
  return {
    ok: problems.length === 0,
    lines: [...lines, ...shown, ...(rest > 0 ? [`FAIL: and ${rest} more`] : [])],
    data: { ...data, problems: problems.slice(0, 10 * maximumProblems) },
  }
}

function total(counts: Counts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function firstLine(text: string): string {
  return text.split('\n').find((line) => /^(Uncaught )?\w*Error\b/.test(line)) ?? text.split('\n')[0] ?? ''
}

function shorten(names: readonly string[]): string {
  return names.length <= 12 ? names.join(', ') : `${names.slice(0, 12).join(', ')} and ${names.length - 12} more`
}
