import { ncclStructs, type StructRun } from '../facts/ncclStructs.js'
import type { StructSpec, VersionedStructSpec } from '../spec/types.js'
import { evaluate, type Translation } from './clang.js'

/** `ncclConfig_t` in 2.14.3 is ncclConfig_v21403. */
function layoutName(struct: string, since: number): string {
  return `${struct.replace(/_t$/, '')}_v${since}`
}

/** Versions in which a run's struct got longer. */
function growths({ fields }: StructRun): number[] {
  return [...new Set(fields.map(([, , since]) => since))].sort((a, b) => a - b)
}

/** C definitions of the earlier layouts of structs that grew; the last layout of each is the header's. */
export const earlierLayouts = ncclStructs
  .flatMap(({ struct, runs }) =>
    runs
      .flatMap((run) =>
        growths(run).map((version) => {
          const members = run.fields.filter(([, , since]) => since <= version)
          return `struct ${layoutName(struct, version)} {${members.map(([name, ctype]) => ` ${ctype} ${name};`).join('')} };`
        }),
      )
      .slice(0, -1),
  )
  .join('\n')

/** Which layout a struct has in which version, and what its initialiser puts into it. */
export function readVersionedStructs(
  unit: Translation,
  macros: ReadonlyMap<string, string>,
  structs: readonly StructSpec[],
): VersionedStructSpec[] {
  return ncclStructs.map(({ struct, initializer, runs }) => {
    const current = structs.find(({ name }) => name === struct)
    const body = macros.get(initializer)
    if (!current || body === undefined) throw new Error(`the header has no ${struct} or no ${initializer}`)
    const told = (runs.at(-1) as StructRun).fields.map(([name]) => name).join(' ')
    const found = current.fields.map(({ name }) => name).join(' ')
    if (told !== found) throw new Error(`the facts say that ${struct} has ${told}; the header says ${found}`)
    const values = body
      .trim()
      .replace(/^\{|\}$/g, '')
      .split(',')
      .map((value) => value.trim())
      .filter((value) => value !== '')
    // Size and version are the caller's.
    const set = values.map((value, index) => [(current.fields[index] as { name: string }).name, value] as const)
    const wanted = set.filter(([name]) => name !== 'size' && name !== 'version')
    const numbers = evaluate(
      unit,
      wanted.map(([, value]) => value),
    )
    return {
      struct,
      initializer,
      initial: wanted.map(([name], index) => [name, Number(numbers[index])] as [string, number]),
      runs: runs.map((run, index) => {
        const versions = growths(run)
        const isLast = index === runs.length - 1
        return {
          initialized: run.initialized,
          layouts: versions.map((since, position) => ({
            since,
            struct: isLast && position === versions.length - 1 ? struct : layoutName(struct, since),
          })),
        }
      }),
    }
  })
}
