import { NativeMemory, type StructCodec, type StructMemory, type StructValue } from '@shoal/ffi'
import { VersionTooOldError } from '@shoal/types'
import { NCCL_VERSION_CODE } from './generated/constants.gen.js'
import { formatNcclVersion, nccl } from './library.js'

/** A struct that grew with NCCL. */
export interface VersionedStruct<T extends object> {
  readonly name: string
  /** what the header's initialiser puts into fields other than size and version; further fields are zero */
  readonly initial: StructValue<T>
  /** layouts that only grew at the end, oldest first, each with the first version that has it */
  readonly runs: readonly {
    readonly initialized: boolean
    readonly layouts: readonly (readonly [since: number, codec: StructCodec<object>])[]
  }[]
}

/** A layout of a struct in one version of NCCL, written as the header of that version would have it. */
interface Layout {
  codec: StructCodec<Record<string, unknown>>
  /** the longest layout that begins like this one */
  grown: StructCodec<Record<string, unknown>>
  initialized: boolean
}

/** Fields that callers do not set: they tell the library which layout it is given. */
const own = new Set(['size', 'magic', 'version'])

/**
 * Makes the struct as a program built for the given version of NCCL would: that version's size, magic number and
 * version, every field unset, then `values`. Texts are stored behind the struct.
 */
export function makeVersioned<T extends object>(
  struct: VersionedStruct<T>,
  values: Readonly<Record<string, unknown>>,
  version: number | undefined,
): NativeMemory {
  if (typeof values !== 'object' || values === null)
    throw new TypeError(`${struct.name}: expected an object with its fields`)
  const target = versionOf(version)
  const layout = layoutIn(struct, target)
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  for (const [field] of given) requireField(struct, layout, field, target)

  const texts = given.flatMap(([field, value]) =>
    typeof value === 'string' ? [[field, Buffer.from(value)] as const] : [],
  )
  const room = Math.max(layout.grown.size, layout.codec.size)
  const memory = NativeMemory.allocate(texts.reduce((bytes, [, text]) => bytes + text.length + 1, room))
  // What a later version reads where this one has padding is unset as well.
  if (layout.initialized)
    memory.bytes.set(layout.grown.allocate(struct.initial as Record<string, unknown>).subarray(0, layout.codec.size))
  if (layout.initialized) {
    // A library newer than these bindings is told the version whose layout it gets.
    layout.codec.write(memory, { size: BigInt(layout.codec.size), version: Math.min(target, NCCL_VERSION_CODE) })
  }
  const pointers: Record<string, bigint> = {}
  let end = room
  for (const [field, text] of texts) {
    if (text.includes(0)) throw new RangeError(`${struct.name}.${field}: the text has a zero byte`)
    memory.bytes.set(text, end)
    pointers[field] = memory.address + BigInt(end)
    end += text.length + 1
  }
  layout.codec.write(memory, { ...Object.fromEntries(given), ...pointers })
  return memory
}

/** Reads a struct as the given version of NCCL lays it out; fields that it does not have are left out. */
export function readVersioned<T extends object>(
  struct: VersionedStruct<T>,
  memory: StructMemory,
  version: number | undefined,
): Partial<T> {
  return layoutIn(struct, versionOf(version)).codec.read(memory) as Partial<T>
}

/** Fields that a version of NCCL knows and callers may set. */
export function fieldsOf<T extends object>(struct: VersionedStruct<T>, version: number | undefined): string[] {
  return Object.keys(layoutIn(struct, versionOf(version)).codec.offsets).filter((field) => !own.has(field))
}

function versionOf(version: number | undefined): number {
  if (version === undefined) return nccl.version ?? 0
  if (!Number.isSafeInteger(version) || version < 0)
    throw new RangeError(`an NCCL version is a number such as ${NCCL_VERSION_CODE}, got ${String(version)}`)
  return version
}

function layoutIn<T extends object>(struct: VersionedStruct<T>, version: number): Layout {
  for (const { initialized, layouts } of [...struct.runs].reverse()) {
    const index = layouts.findLastIndex(([since]) => since <= version)
    if (index < 0) continue
    const codec = (layouts[index] as (typeof layouts)[number])[1]
    return { initialized, codec, grown: (layouts.at(-1) as (typeof layouts)[number])[1] } as unknown as Layout
  }
  const [first] = struct.runs[0]?.layouts[0] ?? [0]
  throw tooOld(struct.name, first, version)
}

function requireField<T extends object>(
  struct: VersionedStruct<T>,
  layout: Layout,
  field: string,
  version: number,
): void {
  if (own.has(field) && layout.initialized)
    throw new TypeError(`${struct.name}.${field} is set by the version, not by the caller`)
  if (Object.hasOwn(layout.codec.offsets, field)) return
  const first = struct.runs
    .flatMap(({ layouts }) => layouts)
    .find(([since, codec]) => since > version && Object.hasOwn(codec.offsets, field))
  if (first === undefined) throw new TypeError(`${struct.name} has no field '${field}'`)
  throw tooOld(`${struct.name}.${field}`, first[0], version)
}

function tooOld(api: string, since: number, installed: number): VersionTooOldError {
  return new VersionTooOldError({
    library: nccl.title,
    api,
    since: formatNcclVersion(since),
    installed: installed === 0 ? 'a version without ncclGetVersion' : formatNcclVersion(installed),
  })
}
