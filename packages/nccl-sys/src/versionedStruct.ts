import { NativeMemory, type StructCodec, type StructMemory, type StructValue } from '@shoal/ffi'
import { formatNcclVersion, VersionTooOldError } from '@shoal/types'
import { NCCL_VERSION_CODE } from './generated/constants.gen.js'
import { nccl } from './generated/library.gen.js'

type AtLeastOne<T> = readonly [T, ...T[]]

/** A struct with more fields in newer versions of NCCL. */
export interface VersionedStruct<T extends object> {
  readonly name: string
  /** values of the header's initializer for fields except size and version; other fields are zero */
  readonly initial: StructValue<T>
  /** fields of type `const char *` */
  readonly texts: readonly string[]
  /** layouts that only grew at the end, oldest first, each with its first version */
  readonly runs: AtLeastOne<{
    readonly initialized: boolean
    readonly layouts: AtLeastOne<readonly [since: number, codec: StructCodec<object>]>
  }>
}

/** Layout of a struct in one version of NCCL. */
interface Layout {
  codec: StructCodec<Record<string, unknown>>
  initialized: boolean
}

/** Fields that callers do not set. They tell the library which layout it receives. */
const own = new Set(['size', 'magic', 'version'])

/**
 * Creates the struct like a program built for a version of NCCL: with that version's size, magic number and version,
 * unset fields, and then `values`. The strings follow the struct.
 * @param raw a struct of a newer header as the start value, with its own size and version
 */
export function makeVersioned<T extends object>(
  struct: VersionedStruct<T>,
  values: Readonly<Record<string, unknown>>,
  version: number | undefined,
  raw?: Uint8Array,
): NativeMemory {
  if (typeof values !== 'object' || values === null)
    throw new TypeError(`${struct.name}: expected an object with its fields`)
  const target = versionOf(version)
  const layout = layoutIn(struct, target)
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  for (const [field, value] of given) {
    requireField(struct, layout, field, target)
    requireAddress(struct, field, value)
  }

  const texts = given.flatMap(([field, value]) =>
    typeof value === 'string' ? [[field, Buffer.from(value)] as const] : [],
  )
  const newest = struct.runs.at(-1)?.layouts.at(-1)?.[1].size ?? 0
  // Allocate memory for the newest layout, so that its codec can read any layout.
  const room = Math.max(newest, layout.codec.size, Math.ceil((raw?.length ?? 0) / 8) * 8)
  const memory = NativeMemory.allocate(texts.reduce((bytes, [, text]) => bytes + text.length + 1, room))
  if (layout.initialized) {
    const initial = Object.entries(struct.initial).filter(([field]) => Object.hasOwn(layout.codec.offsets, field))
    // A library newer than these bindings receives the version of the used layout.
    const told = { size: BigInt(layout.codec.size), version: Math.min(target, NCCL_VERSION_CODE) }
    layout.codec.write(memory, { ...Object.fromEntries(initial), ...told })
  }
  if (raw !== undefined) memory.bytes.set(raw)
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

/** Reads a struct in the layout of a version of NCCL. Omits fields that the version does not have. */
export function readVersioned<T extends object>(
  struct: VersionedStruct<T>,
  memory: StructMemory,
  version: number | undefined,
): Partial<T> {
  return layoutIn(struct, versionOf(version)).codec.read(memory) as Partial<T>
}

/** Returns the fields that a version of NCCL supports and callers may set. */
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
    return { initialized, codec: layouts[index]?.[1] } as unknown as Layout
  }
  throw tooOld(struct.name, struct.runs[0].layouts[0][0], version)
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

/** Refuses small numbers, which the codec accepts as addresses, because no address is that small. */
function requireAddress<T extends object>(struct: VersionedStruct<T>, field: string, value: unknown): void {
  if (typeof (struct.initial as Record<string, unknown>)[field] !== 'bigint') return
  if (typeof value === 'bigint' || value === null) return
  const takesText = struct.texts.includes(field)
  if (takesText && typeof value === 'string') return
  const expected = takesText ? 'a text, an address (bigint) or null' : 'an address (bigint) or null'
  throw new TypeError(`${struct.name}.${field} must be ${expected}, got ${typeof value}`)
}

function tooOld(api: string, since: number, installed: number): VersionTooOldError {
  return new VersionTooOldError({
    library: nccl.title,
    api,
    since: formatNcclVersion(since),
    installed: installed === 0 ? 'a version without ncclGetVersion' : formatNcclVersion(installed),
  })
}
