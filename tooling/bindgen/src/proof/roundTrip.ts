// Passes random values through the codec of every struct and the C++ reader, in both directions.

import { isDeepStrictEqual } from 'node:util'
import type { LibrarySpecFile } from '../spec/types.js'
import { structsByName } from './abi.js'
import { type Leaf, leafSets, objectOf, randomValue, valueAt, valueOfBytes } from './leaves.js'
import type { Codec } from './packages.js'
import { Random } from './random.js'
import { show } from './results.js'

export interface LayoutReport {
  structs: number
  /** The number of fields, including those of nested structs and of elements of struct arrays. */
  fields: number
  /** The number of compared values. */
  values: number
  failures: { struct: string; what: string }[]
}

interface RoundTrip {
  readonly name: string
  readonly codec: Codec
  readonly set: number
  readonly leaves: readonly Leaf[]
  readonly values: readonly (readonly [Leaf, unknown])[]
  readonly image: Uint8Array
  /** The previous content of the memory. */
  readonly before: Uint8Array
}

const roundsPerSet = 4
/** The offset of the struct in a larger memory. */
const margin = 24

/** Calls `read` with the input for the C++ reader of these structs. `read` must return the reader's output. */
export function checkRoundTrips(
  spec: LibrarySpecFile,
  names: readonly string[],
  codecOf: (name: string) => Codec | undefined,
  read: (input: Uint8Array) => string,
): LayoutReport {
  const structs = structsByName(spec)
  const random = new Random(0x1a70)
  const report: LayoutReport = { structs: 0, fields: 0, values: 0, failures: [] }
  const trips: RoundTrip[] = []
  const chunks: Uint8Array[] = []
  for (const [index, name] of names.entries()) {
    const codec = codecOf(name)
    if (codec === undefined) {
      report.failures.push({ struct: name, what: 'has no codec' })
      continue
    }
    report.structs++
    const sets = leafSets(structs, name)
    report.fields += new Set(sets.flat().map(({ expression }) => expression)).size
    const size = structs.get(name)?.size ?? 0
    for (const [set, leaves] of sets.entries()) {
      for (let round = 0; round < roundsPerSet; round++) {
        const trip = writeOne(report, { name, codec, set, leaves }, size, random)
        if (trip === undefined) continue
        trips.push(trip)
        chunks.push(new Uint8Array(Uint32Array.of(index, set).buffer), trip.image)
      }
    }
  }
  const lines = read(Buffer.concat(chunks)).trim().split('\n')
  if (lines.length !== trips.length) throw new Error(`the reader answered ${lines.length} of ${trips.length} records`)
  for (const [index, trip] of trips.entries()) compareRoundTrip(report, trip, lines[index] ?? '')
  return report
}

/** Writes random values with the codec into memory with other content. */
function writeOne(
  report: LayoutReport,
  what: Pick<RoundTrip, 'name' | 'codec' | 'set' | 'leaves'>,
  size: number,
  random: Random,
): RoundTrip | undefined {
  const values = what.leaves.map((leaf) => [leaf, randomValue(leaf, random)] as const)
  const value = objectOf(values)
  const memory = random.bytes(size + 2 * margin)
  const around = memory.slice()
  const fail = (text: string): void => {
    report.failures.push({ struct: what.name, what: text })
  }
  try {
    what.codec.write(memory, value, margin)
    const zeroed = new Uint8Array(size)
    what.codec.write(zeroed, value)
    if (!isDeepStrictEqual(what.codec.allocate(value), zeroed)) fail('allocate and write differ')
    const viewed = new Uint8Array(size)
    assign(what.codec.view(viewed), value)
    if (!isDeepStrictEqual(viewed, zeroed)) fail('setting the properties of a view and write differ')
  } catch (error) {
    fail(String(error))
    return undefined
  }
  const image = memory.slice(margin, margin + size)
  const outside = (bytes: Uint8Array): Uint8Array[] => [bytes.slice(0, margin), bytes.slice(margin + size)]
  if (!isDeepStrictEqual(outside(memory), outside(around))) fail('write reached beyond the struct')
  return { ...what, values, image, before: around.slice(margin, margin + size) }
}

/** Assigns every property, including those of nested views. */
function assign(view: Record<string, unknown>, value: Record<string, unknown>): void {
  for (const [name, part] of Object.entries(value)) {
    if (typeof part === 'object' && part !== null && Object.getPrototypeOf(part) === Object.prototype)
      assign(view[name] as Record<string, unknown>, part as Record<string, unknown>)
    else view[name] = part
  }
}

function compareRoundTrip(report: LayoutReport, trip: RoundTrip, line: string): void {
  const fail = (what: string): void => {
    report.failures.push({ struct: trip.name, what })
  }
  const [first = '', second = ''] = line.split(' |')
  const [size, alignment, ...seen] = first.split(' ')
  const filled = second.trim().split(' ')
  const image = Buffer.from(filled.pop() ?? '', 'hex')
  const { codec, leaves, values } = trip
  if (Number(size) !== codec.size || Number(alignment) !== codec.alignment)
    fail(`has ${size} bytes aligned to ${alignment} in C++, ${codec.size} aligned to ${codec.alignment} in its codec`)
  const touched = new Uint8Array(trip.image.length)
  let read: Record<string, unknown> = {}
  let view: Record<string, unknown> = {}
  try {
    const shifted = Buffer.concat([Buffer.alloc(margin), image])
    read = codec.read(shifted, margin)
    view = codec.view(shifted, margin)
  } catch (error) {
    fail(String(error))
  }
  for (const [index, leaf] of leaves.entries()) {
    const [at, hex = ''] = (seen[index] ?? '').split(':')
    const bytes = Buffer.from(hex, 'hex')
    touched.fill(1, Number(at), Number(at) + bytes.length)
    if (leaf.path.length === 1 && codec.offsets[leaf.path[0] as string] !== Number(at))
      fail(`${leaf.expression} is at ${at} in C++, at ${codec.offsets[leaf.path[0] as string]} in the codec`)
    const written = values[index]?.[1]
    const inC = valueOfBytes(leaf, bytes)
    if (!isDeepStrictEqual(inC, written))
      fail(`${leaf.expression}: ${show(written)} was written, C++ reads ${show(inC)}`)
    const expected = valueOfBytes(leaf, Buffer.from((filled[index] ?? '').split(':')[1] ?? '', 'hex'))
    for (const [how, root] of [
      ['read', read],
      ['view', view],
    ] as const) {
      const got = valueAt(root, leaf.path)
      if (!isDeepStrictEqual(got, expected))
        fail(`${leaf.expression}: C++ wrote ${show(expected)}, ${how} gives ${show(got)}`)
    }
    report.values += 3
  }
  // Padding, and the part of a union that the member does not use, must not change.
  if (trip.image.some((byte, at) => touched[at] === 0 && byte !== trip.before[at]))
    fail('write changed bytes of no field')
}
