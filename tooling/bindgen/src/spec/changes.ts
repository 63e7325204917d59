import type { FunctionSpec, LibrarySpecFile, Lowered, StructSpec } from './types.js'

/** Additions, removals and changes between two specs of a library, one line each. */
export function describeChanges(before: LibrarySpecFile, after: LibrarySpecFile): string[] {
  const lines: string[] = []
  const list = (what: string, names: readonly string[]) => {
    if (names.length > 0) lines.push(`${what}: ${names.join(', ')}`)
  }
  const names = (from: readonly { name: string }[], without: readonly { name: string }[]) => {
    const known = new Set(without.map(({ name }) => name))
    return from.filter(({ name }) => !known.has(name)).map(({ name }) => name)
  }
  for (const kind of ['functions', 'enums', 'structs', 'handles', 'callbacks', 'scalars', 'constants'] as const) {
    list(`new ${kind}`, names(after[kind], before[kind]))
    list(`${kind} that are gone`, names(before[kind], after[kind]))
  }
  const enumerators = (spec: LibrarySpecFile) =>
    new Map(spec.enums.flatMap(({ name, members }) => members.map(([member, value]) => [`${name}.${member}`, value])))
  const [old, now] = [enumerators(before), enumerators(after)]
  list(
    'new enumerators',
    [...now.keys()].filter((name) => !old.has(name)),
  )
  list(
    'enumerators that are gone or have another value',
    [...old].filter(([name, value]) => now.get(name) !== value).map(([name]) => name),
  )
  return lines
}

/** Changes that affect callers of older library versions, one line each. */
export function describeBreaks(before: LibrarySpecFile, after: LibrarySpecFile): string[] {
  const lines: string[] = []
  const gated = new Set(changedSignatures(before, after).filter(({ otherMajors }) => otherMajors))
  for (const entry of changedSignatures(before, after)) {
    const what = gated.has(entry)
      ? 'it is refused in the majors before'
      : 'in older versions it would be called wrongly'
    lines.push(`${entry.name} has another signature under the same symbol: ${what}`)
  }
  const versioned = new Set((after.versionedStructs ?? []).map(({ struct }) => struct))
  const structs = new Map(after.structs.map((entry) => [entry.name, entry]))
  for (const was of before.structs) {
    const is = structs.get(was.name)
    if (is === undefined || sameLayout(was, is) || versioned.has(was.name)) continue
    const grew = keepsFields(was, is) ? `grew from ${was.size} to ${is.size} bytes` : 'has other fields in old places'
    const users = after.functions.filter(({ parameters }) => parameters.some(({ ctype }) => mentions(ctype, is)))
    const used = users.length === 0 ? 'no function takes it' : `taken by ${users.map(({ name }) => name).join(', ')}`
    lines.push(`${was.name} ${grew}; older versions of the library read and write the old one: ${used}`)
  }
  return lines
}

/** Functions with the same symbol in both specs, but other arguments or another result. */
export function changedSignatures(before: LibrarySpecFile, after: LibrarySpecFile): FunctionSpec[] {
  const known = new Map(before.functions.map((entry) => [entry.symbol, entry]))
  return after.functions.filter((entry) => {
    const was = known.get(entry.symbol)
    return was !== undefined && shapeOf(was) !== shapeOf(entry)
  })
}

/** A signature in terms of the calling convention. */
function shapeOf({ result, parameters }: FunctionSpec): string {
  return [result, ...parameters.map(({ lowered }) => lowered)].map(shape).join()
}

function shape(lowered: Lowered): string {
  switch (lowered.kind) {
    case 'integer':
    case 'float':
      return lowered.type
    case 'enum':
      return lowered.signed ? 'i32' : 'u32'
    case 'struct':
      return `struct ${lowered.size}`
    case 'bool':
    case 'void':
      return lowered.kind
    default:
      return 'word'
  }
}

const places = ({ fields }: StructSpec): string[] =>
  fields.map(({ name, offset, size, count = 1 }) => `${name} ${offset} ${size * count}`)

function sameLayout(was: StructSpec, is: StructSpec): boolean {
  return was.size === is.size && places(was).join() === places(is).join()
}

function keepsFields(was: StructSpec, is: StructSpec): boolean {
  const now = new Set(places(is))
  return was.size <= is.size && places(was).every((place) => now.has(place))
}

function mentions(ctype: string, { name, aliases }: StructSpec): boolean {
  return [name, ...aliases].some((each) => new RegExp(`\\b${each}\\b`).test(ctype))
}
