// Asks a list of corners: builds its program against a library, runs it, and holds the answers against recorded ones.
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

/** What hardware answered, and when nothing was recorded, what is noted: `unconfirmed`. */
export const recordedAnswers = (name: CornerList | 'unconfirmed'): CornerAnswers => readData(name) as CornerAnswers

/**
 * Questions that the software device means to answer otherwise, or whose answer depends on the moment, with reasons.
 */
export const cornerDifferences = readData('differences') as Readonly<
  Record<CornerList, Readonly<Record<string, string>>>
>

export interface CornerOptions {
  /** Files of the libraries that the program is linked to. */
  readonly libraries: readonly string[]
  /** The folder that has `shoal/cuda.h` and the other headers of the software device. */
  readonly include: string
  /** The folder for the program. */
  readonly folder: string
  /** Ask for faults by a kernel rather than by the software device. */
  readonly isHardware: boolean
}

/** The answers to a list. */
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

/** Lines of `name = number`. */
function readAnswers(text: string): CornerAnswers {
  const lines = text.split('\n').map((line) => /^(.*) = (-?\d+)$/.exec(line))
  return Object.fromEntries(lines.flatMap((found) => (found === null ? [] : [[found[1], Number(found[2])] as const])))
}

/** Whether hardware gave no answer: it crashed or hung. The software device answers with an error there. */
export const isNoAnswer = (name: string): boolean => name.endsWith(' ends by signal') || name.endsWith(' does not end')

/** What differs from recorded answers, without known differences, in words. */
export function cornerProblems(list: CornerList, answers: CornerAnswers): string[] {
  const known = cornerDifferences[list]
  return Object.entries(recordedAnswers(list))
    .filter(([name, value]) => !isNoAnswer(name) && !(name in known) && answers[name] !== value)
    .map(([name, value]) => `${name}: recorded ${value}, answered ${answers[name] ?? 'nothing'}`)
}

/** Functions that the linker did not find. @throws any other error as it is */
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

/** Asks every list whose libraries are there. The software device has to answer as hardware did; hardware to answer. */
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
      // An older NCCL, for instance: the list asks functions of 2.30.
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
