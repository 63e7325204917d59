import type { History } from '../spec/history.js'
import type { LibrarySpecFile, StructSpec, VersionedStructSpec } from '../spec/types.js'
import { evaluate, type Translation } from './clang.js'

type Run = VersionedStructSpec['runs'][number]

/** The layout of `ncclConfig_t` in 2.14.3 is named ncclConfig_v21403. */
function layoutName(struct: string, since: number): string {
  return `${struct.replace(/_t$/, '')}_v${since}`
}

/** C definitions of the earlier layouts of structs that grew. No header contains them. */
export function earlierLayouts({ structs, versionedStructs = [] }: LibrarySpecFile): string {
  const current = new Set(versionedStructs.map(({ struct }) => struct))
  return versionedStructs
    .flatMap(({ runs }) => runs.flatMap(({ layouts }) => layouts.map(({ struct }) => struct)))
    .filter((name) => !current.has(name))
    .map((name) => {
      const { fields } = find(structs, name)
      const members = fields.map((field) => field.ctype.replace(/(\[.*)?$/, ` ${field.name}$1;`))
      return `struct ${name} { ${members.join(' ')} };`
    })
    .join('\n')
}

/**
 * Structs that carry their size and version because they grew: the layout in each version, and the values of its
 * initialiser. The header has the newest layouts and the spec the earlier ones. If a struct has changed while a version
 * is added, it gets one more layout.
 * @param current the structs of the header
 * @returns these structs and the earlier layouts
 */
export function readVersionedStructs(
  unit: Translation,
  macros: ReadonlyMap<string, string>,
  current: readonly StructSpec[],
  history: History,
): { structs: StructSpec[]; versionedStructs: VersionedStructSpec[] } {
  const { previous } = history
  const structs = [...current]
  const versionedStructs = (previous.versionedStructs ?? []).map((before): VersionedStructSpec => {
    const { struct, initializer } = before
    const header = current.find(({ name }) => name === struct)
    const body = macros.get(initializer)
    if (!header || body === undefined) throw new Error(`the header has no ${struct} or no ${initializer}`)
    const runs = withLayout(before, header, structs, history)
    for (const { layouts } of runs)
      for (const { struct: name } of layouts)
        if (!structs.some((entry) => entry.name === name)) structs.push(find(previous.structs, name))
    return { struct, initializer, initial: readInitial(unit, body, header), runs }
  })
  const known = new Set(versionedStructs.map(({ initializer }) => initializer))
  for (const name of macros.keys()) {
    if (!/^NCCL_\w+_INITIALIZER$/.test(name) || known.has(name)) continue
    history.guess(name, `${name}: the spec does not have the struct among those that carry their version`, undefined)
  }
  return { structs: structs.sort((a, b) => (a.name < b.name ? -1 : 1)), versionedStructs }
}

/** The layouts of a struct, plus the header's if it differs from the spec's last one. */
function withLayout(
  { struct, runs }: VersionedStructSpec,
  header: StructSpec,
  structs: StructSpec[],
  { previous, added }: History,
): Run[] {
  const before = find(previous.structs, struct)
  const members = ({ fields }: StructSpec) => fields.map(({ name, ctype, offset }) => `${name} ${ctype} ${offset}`)
  const [told, found] = [members(before), members(header)]
  if (told.join() === found.join()) return runs
  const last = (runs.at(-1) as Run).layouts
  const newest = last.at(-1) as Run['layouts'][number]
  if (added === undefined || added === newest.since)
    throw new Error(`the spec says that ${struct} has ${told.join(', ')}; the header says ${found.join(', ')}`)
  const name = layoutName(struct, newest.since)
  structs.push({ ...before, name, aliases: [], ctype: `struct ${name}` })
  const earlier = [...last.slice(0, -1), { ...newest, struct: name }]
  const layout = { since: added, struct }
  const onlyGrew = told.every((member, index) => member === found[index])
  return [
    ...runs.slice(0, -1),
    ...(onlyGrew
      ? [{ initialized: true, layouts: [...earlier, layout] }]
      : [
          { ...(runs.at(-1) as Run), layouts: earlier },
          { initialized: true, layouts: [layout] },
        ]),
  ]
}

/** The initial values of fields other than size and version, which the caller sets. */
function readInitial(unit: Translation, body: string, { fields }: StructSpec): VersionedStructSpec['initial'] {
  const values = body
    .trim()
    .replace(/^\{|\}$/g, '')
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '')
    .map((value, index) => [(fields[index] as StructSpec['fields'][number]).name, value] as const)
    .filter(([name]) => name !== 'size' && name !== 'version')
  const numbers = evaluate(
    unit,
    values.map(([, value]) => value),
  )
  return values.map(([name], index) => [name, Number(numbers[index])])
}

function find(structs: readonly StructSpec[], name: string): StructSpec {
  const found = structs.find((entry) => entry.name === name)
  if (!found) throw new Error(`the spec has no ${name}`)
  return found
}
