// Asks a list of corner cases: builds its program against a library, runs it, and compares the answers with recorded
// ones.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { compileProgram } from '@shoal/bindgen/dist/proof/compile.js'
import type { DeviceLibraryName } from '@shoal/bindgen/dist/spec/types.js'
import { type CornerList, cornerHeaders, cornerLists, cornerProgram } from './corners.js'
import type { Subjects } from './subjects.js'

/** Numbers by `group.question`. */
export type CornerAnswers = Readonly<Record<string, number>>

const readData = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../answers/${name}.json`, import.meta.url), 'utf8'))

/** Answers of hardware. Questions without a recorded answer are listed as `unconfirmed`. */
export const recordedAnswers = (name: CornerList | 'unconfirmed'): CornerAnswers => readData(name) as CornerAnswers

/**
 * Questions that the software device intentionally answers differently, or whose answer depends on timing, with
 * reasons.
 */
export const cornerDifferences = readData('differences') as Readonly<
  Record<CornerList, Readonly<Record<string, string>>>
>

export interface CornerOptions {
  /** Files of the libraries that the program links. */
  readonly libraries: readonly string[]
  /** The folder with `shoal/cuda.h` and the other headers of the software device. */
  readonly include: string
  /** The folder where the program is built. */
  readonly folder: string
  /** Causes faults by a kernel instead of by the software device. */
  readonly isHardware: boolean
}

/** Returns the answers to a list. */
export async function askCorners(list: CornerList, options: CornerOptions): Promise<CornerAnswers> {
  const { libraries, include, folder, isHardware } = options
  const flags = [
    '-pthread',
    ...(isHardware ? ['-DSHOAL_HARDWARE'] : []),
    '-Wl,--no-as-needed',
    ...libraries,
    ...libraries.map((file) => `-Wl,-rpath,${dirname(file)}`),
  ]
  const program = await compileProgram(folder, `corners-${list}`, cornerProgram(list), [cornerHeaders, include], flags)
  const { stdout } = spawnSync(program, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return readAnswers(stdout)
}

/** Parses lines of `name = number`. */
function readAnswers(text: string): CornerAnswers {
  const lines = text.split('\n').map((line) => /^(.*) = (-?\d+)$/.exec(line))
  return Object.fromEntries(lines.flatMap((found) => (found === null ? [] : [[found[1], Number(found[2])] as const])))
}

/** Is true if hardware gave no answer because it crashed or hung. The software device answers with an error there. */
export const isNoAnswer = (name: string): boolean => name.endsWith(' ends by signal') || name.endsWith(' does not end')

/** Describes the differences from recorded answers, without the known ones. */
export function cornerProblems(list: CornerList, answers: CornerAnswers): string[] {
  const known = cornerDifferences[list]
  return Object.entries(recordedAnswers(list))
    .filter(([name, value]) => !isNoAnswer(name) && !(name in known) && answers[name] !== value)
    .map(([name, value]) => `${name}: recorded ${value}, answered ${answers[name] ?? 'nothing'}`)
}

/** Returns the functions that the linker did not find. @throws the same error if it has another cause */
function missingFunctions(error: Error): string[] {
  const names = [...error.message.matchAll(/undefined reference to [`'](\w+)'/g)].map(([, name]) => name as string)
  if (names.length === 0) throw error
  return [...new Set(names)].sort()
}

const librariesOf: Readonly<Record<CornerList, readonly DeviceLibraryName[]>> = {
  cuda: ['driver'],
  nccl: ['nccl', 'driver'],
  'nccl-communicators': ['nccl', 'driver'],
  nvshmem: ['nvshmem', 'driver'],
}

/**
 * Asks every list whose libraries are installed. The software device must answer as hardware did. Hardware must only
 * answer.
 */
export async function cornersOf(
  { found, devices }: Subjects,
  options: Omit<CornerOptions, 'libraries'>,
): Promise<{ ok: boolean; lines: string[]; data: Partial<Record<CornerList, CornerAnswers>> }> {
  const lines: string[] = []
  const data: Partial<Record<CornerList, CornerAnswers>> = {}
  let ok = devices >= 2
  if (!ok) lines.push(`FAIL: two devices are needed, there are ${devices}`)
  for (const list of ok ? cornerLists : []) {
    const paths = librariesOf[list].map((library) => found.find((one) => one.library === library)?.path)
    const libraries = paths.filter((path) => path !== undefined)
    if (libraries.length < paths.length) {
      lines.push(`not asked: ${list}: a library was not found`)
      continue
    }
    const answers = await askCorners(list, { ...options, libraries }).catch(missingFunctions)
    if (Array.isArray(answers)) {
      // For example, an older NCCL: the list asks for functions of 2.30.
      lines.push(`not asked: ${list}: the libraries lack functions, such as ${answers[0]}`)
      continue
    }
    const problems = cornerProblems(list, answers)
    data[list] = answers
    const count = Object.keys(answers).length
    lines.push(
      `${list}: ${count} answers, ${problems.length} other than recorded`,
      ...problems.map((one) => `  ${one}`),
    )
    ok &&= options.isHardware ? count > Object.keys(recordedAnswers(list)).length / 2 : problems.length === 0
  }
  return { ok, lines, data }
}
