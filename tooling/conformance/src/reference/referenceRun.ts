import { createHash } from 'node:crypto'
import { CUdevice_attribute, CUfunction_attribute, CUlimit } from '@shoal/cuda-sys/driver'
import type { Device } from '@shoal/driver'
import type { Random } from '../support/random.js'
import type { Value } from './answer.js'
import { answer } from './answers/index.js'
import { unloadModules } from './answers/kernelOf.js'
import type { ReferenceCase } from './cases.js'
import { type Comparison, compare } from './compare.js'
import { referenceCases } from './list.js'
import { askProgram, buildProgram, headerNames, includeFolder } from './program.js'

/** The result of a run. */
export interface ReferenceReport {
  readonly ok: boolean
  readonly lines: readonly string[]
  readonly data: object
}

/** Each package's object for the device, by the package's name. */
export type Packages = Readonly<Record<string, Device>>

interface Compared extends Comparison {
  /** The package and the part of the list. */
  readonly part: string
  readonly name: string
  readonly isOk: boolean
  /** Why the packages refuse more than the driver does. */
  readonly reason: string | undefined
}

/** The most lines that are printed about a case. */
const mostLines = 8

/**
 * Returns the C++ program's answers to the whole list, by part and name. @throws Error if there is no header or no
 * compiler
 */
export function referenceAnswers(random: Random, folder: string): Record<string, Value> {
  const { list, theirs } = askTheProgram(random, folder)
  return Object.fromEntries(list.map((given, index) => [titleOf(given), theirs[index] ?? null]))
}

/**
 * Returns a short digest of each answer, by the digest of its case's part and name. This suffices to detect a changed
 * answer.
 */
export function digestsOf(answers: Readonly<Record<string, Value>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(answers).map(([title, value]) => [digest(title), digest(JSON.stringify(value))]),
  )
}

export const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 10)

const titleOf = ({ part, name }: ReferenceCase): string => `${part}: ${name}`

/** Builds the program in `folder` if needed, and asks it the cases that match the filter. */
function askTheProgram(random: Random, folder: string, filter = '') {
  const include = includeFolder()
  if (include === undefined) throw new Error('there is no cuda.h: CUDA_HOME names the folder of the toolkit')
  const program = buildProgram(folder, include)
  const names = {
    function: headerNames(include, 'function').filter((name) => `CU_FUNC_ATTRIBUTE_${name}` in CUfunction_attribute),
    device: headerNames(include, 'device').filter((name) => `CU_DEVICE_ATTRIBUTE_${name}` in CUdevice_attribute),
    limit: headerNames(include, 'limit').filter((name) => `CU_LIMIT_${name}` in CUlimit),
  }
  const list = referenceCases(names, random).filter((given) => titleOf(given).includes(filter))
  return { list, theirs: askProgram(program, list, folder) }
}

/** Asks the program and the packages, and compares the answers. @throws as {@link referenceAnswers} */
export function referenceRun(packages: Packages, random: Random, folder: string, filter = ''): ReferenceReport {
  const { list, theirs } = askTheProgram(random, folder, filter)
  const compared = Object.entries(packages).flatMap(([label, device]) => {
    // The raw functions use the current context.
    device.primaryContext.setCurrent()
    try {
      return list.map((given, index): Compared => {
        const comparison = compare(answer(device, given), theirs[index] ?? null)
        const { name, stricter: reason } = given
        const isOk = comparison.different.length === 0 && (comparison.stricter.length === 0 || reason !== undefined)
        return { part: `${label} ${given.part}`, name, isOk, reason, ...comparison }
      })
    } finally {
      unloadModules()
    }
  })
  return reportOf(compared)
}

function reportOf(compared: readonly Compared[]): ReferenceReport {
  const sum = (of: readonly Compared[], count: (one: Compared) => number): number =>
    of.reduce((total, one) => total + count(one), 0)
  const countsOf = (of: readonly Compared[]) => ({
    cases: of.length,
    failed: of.filter(({ isOk }) => !isOk).length,
    equal: sum(of, ({ equal }) => equal),
    refused: sum(of, ({ refused }) => refused),
    refusedHere: sum(of, ({ refusedHere }) => refusedHere),
    stricter: sum(of, ({ stricter }) => stricter.length),
    different: sum(of, ({ different }) => different.length),
  })
  const parts = [...new Set(compared.map(({ part }) => part))]
  const counts = Object.fromEntries(
    [
      ...parts.map((part) => [part, compared.filter((one) => one.part === part)] as const),
      ['all', compared] as const,
    ].map(([part, of]) => [part, countsOf(of)] as const),
  )
  const mismatches = compared
    .filter(({ isOk }) => !isOk)
    .map(({ part, name, different, stricter }) => ({
      part,
      name,
      values: [...different, ...stricter.map((text) => `refused here alone: ${text}`)],
    }))
  const lines = mismatches.flatMap(({ part, name, values }) => [
    `FAIL ${part}: ${name}`,
    ...values.slice(0, mostLines).map((text) => `       ${text}`),
  ])
  for (const [part, { cases, failed, equal, refused, refusedHere, stricter, different }] of Object.entries(counts))
    lines.push(
      `${part}: ${cases} cases, ${failed} failed; ${equal} values equal, ${refused} refused alike, ` +
        `${refusedHere} refused before the driver would, ${stricter} refused here alone, ${different} different`,
    )
  lines.push(`${compared.length - mismatches.length} passed, ${mismatches.length} failed`)
  return {
    ok: mismatches.length === 0 && compared.length > 0,
    lines,
    data: { counts, mismatches, stricter: reasonsOf(compared) },
  }
}

/** Lists what only the packages refuse, by the reason in the list, with the first value that the driver accepts. */
function reasonsOf(compared: readonly Compared[]) {
  const reasons = new Map<string, { cases: number; first: string | undefined }>()
  for (const { reason, name, stricter } of compared) {
    if (reason === undefined || stricter.length === 0) continue
    const found = reasons.get(reason) ?? { cases: 0, first: `${name}: ${stricter[0]}` }
    found.cases += 1
    reasons.set(reason, found)
  }
  return Object.fromEntries(reasons)
}
