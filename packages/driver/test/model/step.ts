import { DisposedError, type MemoryAccess, StatusError } from '@shoal/driver'
import { finishReleasesSync } from '@shoal/driver/shared'
import fc from 'fast-check'
import type { World } from './world.js'

type Kind = 'RangeError' | 'TypeError' | 'DisposedError' | 'StatusError'

/** An action with the reasons for its failure. Without a reason it must succeed. */
type Attempt = (world: World) => (() => void | Promise<void>) | undefined

/** Number of successes and refusals of each command. */
export const outcomes = new Map<string, { done: number; refused: number }>()
let current = { done: 0, refused: 0 }

export class Step implements fc.AsyncCommand<object, World> {
  readonly #name: string
  readonly #chosen: readonly unknown[]
  readonly #attempt: Attempt

  constructor(name: string, chosen: readonly unknown[], attempt: Attempt) {
    this.#name = name
    this.#chosen = chosen
    this.#attempt = attempt
  }

  check(): boolean {
    return true
  }

  async run(_: object, world: World): Promise<void> {
    current = outcomes.get(this.#name) ?? { done: 0, refused: 0 }
    outcomes.set(this.#name, current)
    await this.#attempt(world)?.()
    for (const device of world.devices) {
      finishReleasesSync()
      const { free, total } = device.memoryInfo()
      const expected = world.used(device.ordinal)
      if (total - free !== expected) {
        throw new Error(`device ${device.ordinal} has ${total - free} bytes in use, the model ${expected}`)
      }
    }
  }

  toString(): string {
    return `${this.#name}${fc.stringify(this.#chosen)}`
  }
}

function kindOf(error: unknown): Kind {
  if (error instanceof DisposedError) return 'DisposedError'
  if (error instanceof StatusError) return 'StatusError'
  if (error instanceof RangeError) return 'RangeError'
  if (error instanceof TypeError) return 'TypeError'
  throw error
}

/** Runs the action and checks that it fails for one of the reasons, or succeeds if there is none. */
export function attempt<T>(reasons: readonly (Kind | false)[], act: () => T): { readonly value: T } | undefined {
  const expected = reasons.filter((reason) => reason !== false)
  let value: T
  try {
    value = act()
  } catch (error) {
    const kind = kindOf(error)
    if (!expected.includes(kind)) {
      throw new Error(`expected ${expected.join(' or ') || 'success'}`, { cause: error })
    }
    if (error instanceof StatusError && error.isSticky) throw error
    current.refused += 1
    return undefined
  }
  if (expected.length > 0) throw new Error(`expected ${expected.join(' or ')}, and it succeeded`)
  current.done += 1
  return { value }
}

export interface Listed {
  readonly real: { readonly disposed: boolean }
}

/** Returns an existing object in nine of ten cases. */
export function pick<T extends Listed>(list: readonly T[], index: number): T | undefined {
  const alive = index % 10 === 9 ? list : list.filter(({ real }) => !real.disposed)
  const from = alive.length === 0 ? list : alive
  return from.length === 0 ? undefined : from[Math.floor(index / 10) % from.length]
}

/** Returns a granule within the size in nine of ten cases. */
export function within(granule: number, size: number): number {
  return granule % 10 === 9 || size === 0 ? granule % 7 : Math.floor(granule / 10) % size
}

export const index = fc.nat(999)
export const granules = fc.nat(5)
export const some = fc.oneof(
  { arbitrary: fc.integer({ min: 1, max: 4 }), weight: 9 },
  { arbitrary: fc.constant(0), weight: 1 },
)
export const room = fc.oneof(
  { arbitrary: fc.integer({ min: 4, max: 12 }), weight: 9 },
  { arbitrary: fc.nat(2), weight: 1 },
)
export const device = fc.nat(1)
export const byte = fc.nat(255)
export const access = fc.constantFrom<MemoryAccess>('none', 'read', 'readWrite')

export function command<A extends unknown[]>(
  name: string,
  values: { readonly [K in keyof A]: fc.Arbitrary<A[K]> },
  make: (world: World, ...values: A) => (() => void | Promise<void>) | undefined,
): fc.Arbitrary<Step> {
  return fc
    .tuple(...(values as unknown as fc.Arbitrary<unknown>[]))
    .map((chosen) => new Step(name, chosen, (world) => make(world, ...(chosen as A))))
}

/** Counts a command that succeeded without `attempt`. */
export function countDone(): void {
  current.done += 1
}

export interface Region {
  readonly offset: number
  readonly memoryOffset: number
  readonly length: number
}

export const often = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 3 }, { arbitrary: other, weight: 1 })

export const region = fc.record({
  offset: fc.nat(7),
  memoryOffset: often(0, granules),
  length: often<number | null>(null, granules),
})
export const smallRegion = fc.record({
  offset: often(0, granules),
  memoryOffset: often(0, granules),
  length: fc.oneof(fc.constant(null), fc.constant(1), granules),
})
export type Wanted = { readonly offset: number; readonly memoryOffset: number; readonly length: number | null }

export function resolve(wanted: Wanted, available: number): Region {
  return { ...wanted, length: wanted.length ?? available - wanted.memoryOffset }
}

export function bytesOf(world: World, wanted: Wanted) {
  const { offset, memoryOffset, length } = wanted
  return {
    offset: offset * world.unit,
    memoryOffset: memoryOffset * world.unit,
    ...(length === null ? {} : { byteLength: length * world.unit }),
  }
}

export function overlaps(one: { offset: number; granules: number }, offset: number, length: number): boolean {
  return offset < one.offset + one.granules && one.offset < offset + length
}

export function requireAll(bytes: Uint8Array, expected: number | undefined): void {
  const wrong = bytes.findIndex((one) => one !== expected)
  if (wrong >= 0) throw new Error(`byte ${wrong} is ${bytes[wrong]}, the model has ${expected}`)
}
