import type { Random } from '@shoal/conformance'

/** Values that are wrong in any field. */
const junk: readonly unknown[] = [
  null,
  true,
  false,
  -1,
  0,
  1,
  0.5,
  64,
  2 ** 21,
  2 ** 31,
  2 ** 32,
  2 ** 47,
  Number.MAX_SAFE_INTEGER,
  2 ** 53,
  1e308,
  -(2 ** 63),
  '',
  '0',
  '4096',
  'process',
  'ipc',
  'pool',
  'posix-fd',
  'fabric',
  'memory',
  'f32',
  'u8',
  'f4x2',
  '\0',
  '\ud800',
  'x'.repeat(5000),
  Buffer.alloc(64).toString('base64'),
  [],
  [0],
  [-1],
  [1, 1, 1, 1, 1, 1, 1, 1, 1],
  [2 ** 26, 2 ** 27],
  [2 ** 21, 2 ** 21],
  Array(65).fill(2 ** 21),
  Array(5000).fill(1),
  [[1]],
  {},
  { type: 'ipc-event', handle: Buffer.alloc(64).toString('base64') },
  { length: 1, 0: 1 },
]

const fields = [
  'type',
  'version',
  'way',
  'process',
  'address',
  'offer',
  'deviceUuid',
  'byteLength',
  'byteOffset',
  'allocationBytes',
  'pieces',
  'handle',
  'dtype',
  'shape',
  'strides',
  'readOnly',
  'event',
  'content',
  '__proto__',
  'toJSON',
  'then',
] as const

type Holder = Record<string, unknown>

const pick = <T>(random: Random, list: readonly T[]): T => list[random.integer(0, list.length - 1)] as T

const isHolder = (value: unknown): value is Holder => typeof value === 'object' && value !== null

/** Returns all objects and arrays in a value. */
function holders(value: unknown): Holder[] {
  if (!isHolder(value)) return []
  return [value, ...Object.values(value).slice(0, 100).flatMap(holders)]
}

function changedNumber(random: Random, value: number): number {
  const changes = [value + 1, value - 1, -value, value * 2, value / 2, value + 2 ** 32, value * 2 ** 21, value + 0.5]
  return random.integer(0, 3) === 0 ? random.word() * 2 ** random.integer(0, 21) : pick(random, changes)
}

function changedText(random: Random, text: string): string {
  const at = random.integer(0, Math.max(text.length - 1, 0))
  const other = String.fromCharCode(random.integer(32, 126))
  const changes = [
    () => text.slice(0, at) + other + text.slice(at + 1),
    () => text.slice(0, at),
    () => text.slice(at),
    () => text + text,
    () => text.slice(0, at) + other + text.slice(at),
    () => text.toUpperCase(),
    () => ` ${text}`,
    () => changedBase64(random, text),
    () => changedBase64(random, text),
  ]
  return pick(random, changes)()
}

/** Changes a byte that the text encodes in base64, so that the text remains valid base64. */
function changedBase64(random: Random, text: string): string {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length === 0) return text
  const at = random.integer(0, bytes.length - 1)
  bytes[at] = (bytes[at] as number) ^ (1 << random.integer(0, 7))
  return bytes.toString('base64')
}

function changedValue(random: Random, value: unknown): unknown {
  if (random.integer(0, 2) === 0) return pick(random, junk)
  if (typeof value === 'number') return changedNumber(random, value)
  if (typeof value === 'string') return changedText(random, value)
  if (typeof value === 'boolean') return !value
  if (!Array.isArray(value)) return pick(random, junk)
  const list = [...value]
  const changes = [
    () => list.push(random.integer(-2, 1000)),
    () => list.pop(),
    () => list.push(...list),
    () => list.reverse(),
    () => {
      list[random.integer(0, list.length)] = pick(random, junk)
    },
  ]
  pick(random, changes)()
  return list
}

/** Returns a copy of plain data with one change. */
export function mutateData(random: Random, data: unknown): unknown {
  const copy: unknown = structuredClone(data)
  const all = holders(copy)
  if (all.length === 0 || random.integer(0, 40) === 0) return pick(random, junk)
  const holder = random.integer(0, 2) === 0 ? pick(random, all) : (all[0] as Holder)
  const keys = Object.keys(holder)
  const key = keys.length === 0 || random.integer(0, 6) === 0 ? pick(random, fields) : pick(random, keys)
  const put = (name: string, value: unknown): void => {
    // An assignment to `__proto__` would not create a property, but JSON.parse does.
    Object.defineProperty(holder, name, { value, writable: true, enumerable: true, configurable: true })
  }
  const other = pick(random, keys.length === 0 ? fields : keys)
  const change = random.integer(0, 9)
  if (change < 2) delete holder[key]
  else if (change === 2) {
    const value = holder[key]
    put(key, holder[other])
    put(other, value)
  } else put(key, changedValue(random, holder[key]))
  return copy
}

/** Returns a copy of bytes with one change. */
export function mutateBytes(random: Random, bytes: Uint8Array): Uint8Array {
  const at = random.integer(0, Math.max(bytes.length - 1, 0))
  const end = random.integer(at, bytes.length)
  const copy = Uint8Array.from(bytes)
  const changes: (() => Uint8Array)[] = [
    () => {
      copy[at] = random.word()
      return copy
    },
    () => {
      copy[at] = (copy[at] as number) ^ (1 << random.integer(0, 7))
      return copy
    },
    () => copy.subarray(0, at),
    () => copy.subarray(at),
    () => Buffer.concat([copy, copy]),
    () => Buffer.concat([copy.subarray(0, at), random.bytes(random.integer(1, 40)), copy.subarray(at)]),
    () => Buffer.concat([copy.subarray(0, at), copy.subarray(end)]),
    () => Buffer.concat([copy.subarray(0, end), copy.subarray(at)]),
    () => random.bytes(random.integer(0, 300)),
    () => Buffer.from('['.repeat(random.integer(1, 100_000))),
    () => Buffer.alloc(random.integer(0, 2 ** 20), pick(random, [0, 32, 48, 34, 255])),
    () => new Uint8Array(0),
  ]
  return pick(random, changes)()
}

/** Returns a copy of a list of descriptors with one change. */
export function mutateDescriptors(random: Random, own: readonly number[], others: readonly number[]): number[] {
  const copy = [...own]
  const at = random.integer(0, copy.length)
  const changes = [
    () => copy.splice(at, 1),
    () => copy.splice(at, 1, pick(random, others)),
    () => copy.splice(at, 0, pick(random, others)),
    () => copy.splice(at, 0, ...copy),
    () => copy.reverse(),
    () => copy.splice(0),
    () => copy.splice(0, copy.length, ...Array.from({ length: 64 }, () => pick(random, others))),
  ]
  pick(random, changes)()
  return copy.slice(0, 64)
}

export { pick }
