import {
  AddressRange,
  DeviceBuffer,
  DisposedError,
  GrowableRange,
  type MemoryAccess,
  MulticastObject,
  PhysicalMemory,
  StatusError,
} from '@shoal/driver'
import { finishReleasesSync } from '@shoal/driver/shared'
import fc from 'fast-check'
import {
  type GrowableModel,
  type HandleModel,
  known,
  type MappingModel,
  Memory,
  type MulticastModel,
  type PhysicalModel,
  type RangeModel,
  Team,
  type World,
} from './world.js'

type Kind = 'RangeError' | 'TypeError' | 'DisposedError' | 'StatusError'

/** Something to do, with the reasons for which it must fail: none means that it must not. */
type Attempt = (world: World) => (() => void | Promise<void>) | undefined

/** How often each command did something, and how often it was refused. */
export const outcomes = new Map<string, { done: number; refused: number }>()
let current = { done: 0, refused: 0 }

class Step implements fc.AsyncCommand<object, World> {
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

/** Does it, and sees that it fails for one of the reasons, or not at all when there is none. */
function attempt<T>(reasons: readonly (Kind | false)[], act: () => T): { readonly value: T } | undefined {
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

interface Listed {
  readonly real: { readonly disposed: boolean }
}

/** Nine times out of ten one that is still there. */
function pick<T extends Listed>(list: readonly T[], index: number): T | undefined {
  const alive = index % 10 === 9 ? list : list.filter(({ real }) => !real.disposed)
  const from = alive.length === 0 ? list : alive
  return from.length === 0 ? undefined : from[Math.floor(index / 10) % from.length]
}

/** Nine times out of ten one of so many. */
function within(granule: number, size: number): number {
  return granule % 10 === 9 || size === 0 ? granule % 7 : Math.floor(granule / 10) % size
}

const index = fc.nat(999)
const granules = fc.nat(5)
const some = fc.oneof(
  { arbitrary: fc.integer({ min: 1, max: 4 }), weight: 9 },
  { arbitrary: fc.constant(0), weight: 1 },
)
const room = fc.oneof({ arbitrary: fc.integer({ min: 4, max: 12 }), weight: 9 }, { arbitrary: fc.nat(2), weight: 1 })
const device = fc.nat(1)
const byte = fc.nat(255)
const access = fc.constantFrom<MemoryAccess>('none', 'read', 'readWrite')

function command<A extends unknown[]>(
  name: string,
  values: { readonly [K in keyof A]: fc.Arbitrary<A[K]> },
  make: (world: World, ...values: A) => (() => void | Promise<void>) | undefined,
): fc.Arbitrary<Step> {
  return fc
    .tuple(...(values as unknown as fc.Arbitrary<unknown>[]))
    .map((chosen) => new Step(name, chosen, (world) => make(world, ...(chosen as A))))
}

const reserve = command('reserve', [room, fc.nat(14)], (world, size, shift) => () => {
  const alignment = shift === 0 ? 0 : shift === 1 ? 3 : 2 ** (20 + shift)
  const made = attempt([size === 0 && 'RangeError', shift === 1 && 'RangeError'], () =>
    AddressRange.reserve(size * world.unit, { alignment }),
  )
  if (made !== undefined) world.ranges.push({ real: made.value, granules: size })
})

const create = command('create', [device, some, fc.boolean()], (world, on, size, isShared) => () => {
  const byteLength = size * world.unit
  const reasons = [size === 0 && 'RangeError', world.used(on) + byteLength > world.capacity && 'StatusError'] as const
  const options = isShared ? ({ handleTypes: 'posix-fd' } as const) : {}
  const made = attempt(reasons, () => PhysicalMemory.create(world.devices[on] as never, byteLength, options))
  if (made === undefined) return
  world.physicals.push({
    real: made.value,
    memory: world.addMemory(new Memory(on, size, isShared)),
    canExport: isShared,
  })
})

const createOdd = command('createOdd', [fc.integer({ min: 1, max: 2 ** 21 - 1 })], (world, byteLength) => () => {
  attempt(['RangeError'], () => PhysicalMemory.create(world.devices[0] as never, byteLength))
})

const dispose = command('dispose', [fc.nat(5), index, fc.boolean()], (world, kind, at, isAsync) => {
  const lists = [world.ranges, world.physicals, world.multicasts, world.mappings, world.handles, world.growables]
  const found = pick<Listed>(lists[kind] ?? [], at)
  if (found === undefined) return undefined
  return async () => {
    const { real } = found as unknown as { real: Disposable & Partial<AsyncDisposable> }
    if (isAsync && real[Symbol.asyncDispose] !== undefined) await real[Symbol.asyncDispose]?.()
    else real[Symbol.dispose]()
    current.done += 1
  }
})

function targets(world: World): (PhysicalModel | MulticastModel)[] {
  return [...world.physicals, ...world.multicasts]
}

interface Region {
  readonly offset: number
  readonly memoryOffset: number
  readonly length: number
}

const often = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 3 }, { arbitrary: other, weight: 1 })

const region = fc.record({
  offset: fc.nat(7),
  memoryOffset: often(0, granules),
  length: often<number | null>(null, granules),
})
const smallRegion = fc.record({
  offset: often(0, granules),
  memoryOffset: often(0, granules),
  length: fc.oneof(fc.constant(null), fc.constant(1), granules),
})
type Wanted = { readonly offset: number; readonly memoryOffset: number; readonly length: number | null }

function resolve(wanted: Wanted, available: number): Region {
  return { ...wanted, length: wanted.length ?? available - wanted.memoryOffset }
}

function bytesOf(world: World, wanted: Wanted) {
  const { offset, memoryOffset, length } = wanted
  return {
    offset: offset * world.unit,
    memoryOffset: memoryOffset * world.unit,
    ...(length === null ? {} : { byteLength: length * world.unit }),
  }
}

function overlaps(one: { offset: number; granules: number }, offset: number, length: number): boolean {
  return offset < one.offset + one.granules && one.offset < offset + length
}

const grants = fc.option(fc.array(fc.tuple(device, access), { maxLength: 3 }))

const map = command('map', [index, index, region, grants], (world, rangeAt, targetAt, wanted, given) => {
  const range = pick(world.ranges, rangeAt)
  const target = pick(targets(world), targetAt)
  if (range === undefined || target === undefined) return undefined
  return () => {
    const memory = 'memory' in target ? target.memory : undefined
    const team = 'team' in target ? target.team : undefined
    const available = memory?.bytes.length ?? team?.granules ?? 0
    const { offset, memoryOffset, length } = resolve(wanted, available)
    const isWaiting = team !== undefined && !team.isComplete
    const isKnown = !('isImported' in target) || (!target.isImported && !team?.isShared)
    const isOutsideTeam = given?.some(([on]) => team !== undefined && !team.devices.has(on)) ?? false
    // Twice the same device in one list is a matter of the driver: the last one counts.
    const reasons = [
      range.real.disposed && 'DisposedError',
      target.real.disposed && 'DisposedError',
      isWaiting && (isKnown ? 'RangeError' : 'StatusError'),
      (length <= 0 || memoryOffset + length > available) && 'RangeError',
      offset + length > range.granules && 'RangeError',
      world.mappedIn(range).some((one) => overlaps(one, offset, length)) && 'RangeError',
      isOutsideTeam && 'StatusError',
      // Drivers map memory as a whole only.
      (memoryOffset !== 0 || length !== available) && 'StatusError',
    ] as const
    const list = given?.map(([on, what]) => ({ place: world.devices[on] as never, access: what }))
    const options = { ...bytesOf(world, wanted), ...(list === undefined ? {} : { access: list }) }
    const made = attempt(reasons, () => range.real.map(target.real, options))
    if (made === undefined) return
    const rights: MemoryAccess[] = ['none', 'none']
    const own = memory !== undefined ? ownersOf(target as PhysicalModel) : addedTo(target as MulticastModel)
    for (const on of own) if (given === null) rights[on] = 'readWrite'
    for (const [on, what] of given ?? []) rights[on] = what
    world.mappings.push({
      real: made.value,
      range,
      offset,
      granules: length,
      canExport: 'canExport' in target && target.canExport,
      ...(memory === undefined ? {} : { memory }),
      ...(team === undefined ? {} : { team }),
      access: rights,
    })
  }
})

/** Imported memory counts as memory of the device that it was imported for. */
function ownersOf({ real }: PhysicalModel): readonly number[] {
  return real._contexts.map(({ device: { ordinal } }) => ordinal)
}

function addedTo({ added }: MulticastModel): readonly number[] {
  return [...added]
}

const setAccess = command('setAccess', [index, device, access], (world, at, on, what) => {
  const mapping = pick(world.mappings, at)
  if (mapping === undefined) return undefined
  return () => {
    const reasons = [
      mapping.real.disposed && 'DisposedError',
      mapping.team !== undefined && !mapping.team.devices.has(on) && 'StatusError',
    ] as const
    if (attempt(reasons, () => mapping.real.setAccess(world.devices[on] as never, what)) === undefined) return
    mapping.access[on] = what
  }
})

const getAccess = command('getAccess', [index, device], (world, at, on) => {
  const mapping = pick(world.mappings, at)
  if (mapping === undefined) return undefined
  return () => {
    const reasons = [mapping.real.disposed && 'DisposedError'] as const
    const got = attempt(reasons, () => mapping.real.getAccess(world.devices[on] as never))
    if (got !== undefined && got.value !== mapping.access[on]) {
      throw new Error(`device ${on} has access ${got.value}, the model ${mapping.access[on]}`)
    }
  }
})

function start(world: World, mapping: MappingModel, on: number, granule: number): DeviceBuffer<'u8'> {
  const options = { byteOffset: granule * world.unit, length: known }
  return DeviceBuffer.view(world.devices[on] as never, mapping.real, 'u8', options)
}

const write = command('write', [index, device, index, byte], (world, at, on, which, value) => {
  const mapping = pick(world.mappings, at)
  if (mapping === undefined) return undefined
  return () => {
    const granule = within(which, mapping.granules)
    const reasons = [
      mapping.real.disposed && 'DisposedError',
      granule >= mapping.granules && 'RangeError',
      mapping.access[on] !== 'readWrite' && 'StatusError',
    ] as const
    if (attempt(reasons, () => start(world, mapping, on, granule).fillSync(value)) === undefined) return
    if (mapping.memory !== undefined) mapping.memory.bytes[granule] = value
    for (const binding of mapping.team?.bindings ?? []) {
      if (!overlaps(binding, granule, 1)) continue
      binding.memory.bytes[binding.memoryOffset + granule - binding.offset] = value
    }
  }
})

const read = command('read', [index, device, index], (world, at, on, which) => {
  const mapping = pick(world.mappings, at)
  if (mapping === undefined) return undefined
  return () => {
    const granule = within(which, mapping.granules)
    const reasons = [
      mapping.real.disposed && 'DisposedError',
      granule >= mapping.granules && 'RangeError',
      mapping.team !== undefined && 'StatusError',
      mapping.access[on] === 'none' && 'StatusError',
    ] as const
    const got = attempt(reasons, () => start(world, mapping, on, granule).toArraySync())
    if (got !== undefined) requireAll(got.value, mapping.memory?.bytes[granule])
  }
})

function requireAll(bytes: Uint8Array, expected: number | undefined): void {
  const wrong = bytes.findIndex((one) => one !== expected)
  if (wrong >= 0) throw new Error(`byte ${wrong} is ${bytes[wrong]}, the model has ${expected}`)
}

const exportHandle = command('export', [index], (world, at) => {
  const target = pick(targets(world), at)
  if (target === undefined) return undefined
  return () => {
    const canShare = 'memory' in target ? target.canExport : target.team.canShare
    const reasons = [target.real.disposed && 'DisposedError', !canShare && 'StatusError'] as const
    const made = attempt(reasons, () => target.real.export())
    if (made === undefined) return
    if ('team' in target) target.team.isShared = true
    const real = made.value as HandleModel['real']
    world.handles.push('memory' in target ? { real, memory: target.memory } : { real, team: target.team })
  }
})

const importHandle = command('import', [index, device, fc.boolean()], (world, at, on, isMixedUp) => {
  const handle = pick(world.handles, at)
  if (handle === undefined) return undefined
  return () => {
    const { memory, team } = handle
    const reasons = [isMixedUp && 'TypeError', handle.real.disposed && 'DisposedError'] as const
    if ((memory !== undefined) !== isMixedUp) {
      const made = attempt(reasons, () => PhysicalMemory.import(world.devices[on] as never, handle.real as never))
      if (made !== undefined && memory !== undefined)
        world.physicals.push({ real: made.value, memory, canExport: false })
    } else {
      const made = attempt(reasons, () => MulticastObject.import(handle.real as never))
      if (made === undefined || team === undefined) return
      world.multicasts.push({ real: made.value, team, added: new Set(), isImported: true })
    }
  }
})

const retain = command('retain', [index, index, device], (world, at, which, on) => {
  const mapping = pick(world.mappings, at)
  if (mapping === undefined || mapping.real.disposed) return undefined
  return () => {
    const granule = within(which, mapping.granules)
    const size = mapping.memory?.bytes.length ?? mapping.team?.granules ?? 0
    const reasons = [
      granule >= mapping.granules && 'StatusError',
      mapping.team !== undefined && 'StatusError',
      mapping.memory !== undefined && mapping.memory.device !== on && 'RangeError',
    ] as const
    // Beyond its end may lie another mapping.
    if (granule >= mapping.granules) return
    const address = mapping.real.address + BigInt(granule * world.unit + 5)
    const place = world.devices[on] as never
    const made = attempt(reasons, () => PhysicalMemory.retain(place, address, size * world.unit))
    if (made !== undefined && mapping.memory !== undefined) {
      world.physicals.push({ real: made.value, memory: mapping.memory, canExport: mapping.canExport })
    }
  }
})

const createMulticast = command(
  'createMulticast',
  [often(1, fc.nat(3)), some, fc.boolean()],
  (world, count, size, canShare) => () => {
    const reasons = [
      (count === 0 || size === 0) && 'RangeError',
      count > world.devices.length && 'StatusError',
    ] as const
    const properties = { deviceCount: count, byteLength: size * world.unit }
    const made = attempt(reasons, () =>
      MulticastObject.create(canShare ? { ...properties, handleTypes: 'posix-fd' } : properties),
    )
    if (made === undefined) return
    world.multicasts.push({
      real: made.value,
      team: new Team(count, size, canShare),
      added: new Set(),
      isImported: false,
    })
  },
)

const addDevice = command('addDevice', [index, device], (world, at, on) => {
  const multicast = pick(world.multicasts, at)
  if (multicast === undefined) return undefined
  return () => {
    const { team, added, real, isImported } = multicast
    const reasons = [
      real.disposed && 'DisposedError',
      added.has(on) && 'RangeError',
      !isImported && added.size >= team.count && 'RangeError',
      (team.devices.has(on) || team.isComplete) && 'StatusError',
    ] as const
    if (attempt(reasons, () => real.addDevice(world.devices[on] as never)) === undefined) return
    added.add(on)
    team.devices.add(on)
  }
})

const bind = command('bind', [index, index, smallRegion, fc.boolean()], (world, at, sourceAt, wanted, byAddress) => {
  const multicast = pick(world.multicasts, at)
  const source = byAddress ? pick(world.mappings, sourceAt) : pick(world.physicals, sourceAt)
  if (multicast === undefined || source === undefined) return undefined
  return () => {
    const { team, real } = multicast
    const isMapping = 'granules' in source
    const { memory } = source
    const available = isMapping ? source.granules : (memory?.bytes.length ?? 0)
    const { offset, memoryOffset, length } = resolve(wanted, available)
    const isAlone = !multicast.isImported && !team.isShared
    const isOutsideTeam = memory !== undefined && !team.devices.has(memory.device)
    const device = memory?.device
    const isTaken = team.bindings.some((one) => one.memory.device === device && overlaps(one, offset, length))
    const isForeign = isAlone && device !== undefined && !multicast.added.has(device)
    const reasons = [
      real.disposed && 'DisposedError',
      source.real.disposed && 'DisposedError',
      !team.isComplete && (isAlone ? 'RangeError' : 'StatusError'),
      isOutsideTeam && 'StatusError',
      isOutsideTeam && 'RangeError',
      isMapping && source.team !== undefined && 'StatusError',
      isForeign && 'RangeError',
      (length <= 0 || memoryOffset + length > available) && 'RangeError',
      offset + length > team.granules && 'RangeError',
      isTaken && 'RangeError',
      isTaken && 'StatusError',
      team.canShare && memory?.isShared === false && 'StatusError',
    ] as const
    const options = bytesOf(world, wanted)
    const act = (): unknown =>
      isMapping ? real.bindAddressSync(source.real, options) : real.bindMemorySync(source.real, options)
    if (attempt(reasons, act) === undefined || memory === undefined) return
    team.bindings.push({ memory, offset, memoryOffset, granules: length, by: real })
  }
})

const unbind = command('unbind', [index, device, index], (world, at, anyDevice, which) => {
  const multicast = pick(world.multicasts, at)
  if (multicast === undefined) return undefined
  return () => {
    const { team, real } = multicast
    const wanted = which % 10 === 9 ? undefined : team.bindings[which % Math.max(1, team.bindings.length)]
    const on = wanted?.memory.device ?? anyDevice
    const offset = wanted?.offset ?? which % 5
    const found = team.bindings.find((one) => one.by === real && one.memory.device === on && one.offset === offset)
    const reasons = [
      real.disposed && 'DisposedError',
      found === undefined && 'RangeError',
      offset >= team.granules && 'RangeError',
    ] as const
    const act = (): unknown => real.unbind(world.devices[on] as never, { offset: offset * world.unit })
    if (attempt(reasons, act) === undefined) return
    team.bindings = team.bindings.filter((one) => one !== found)
  }
})

const reserveGrowable = command('reserveGrowable', [room, some], (world, maximum, step) => () => {
  const reasons = [(maximum === 0 || step === 0) && 'RangeError'] as const
  const options = { maximumBytes: maximum * world.unit, stepBytes: step * world.unit }
  const made = attempt(reasons, () => GrowableRange.reserve(world.devices[0] as never, options))
  if (made === undefined) return
  world.growables.push({ real: made.value, maximum, step, length: 0, pieces: [], bytes: [] })
})

function sum(list: readonly number[]): number {
  return list.reduce((all, one) => all + one, 0)
}

const resize = command('resize', [index, fc.nat(8 * 4)], (world, at, quarters) => {
  const growable = pick(world.growables, at)
  if (growable === undefined) return undefined
  return () => {
    const { real, maximum, step } = growable
    const length = (quarters / 4) * world.unit
    const needed = Math.ceil(quarters / 4)
    const have = sum(growable.pieces)
    const more = needed > have ? Math.min(Math.max(needed - have, step), maximum - have) : 0
    const reasons = [
      real.disposed && 'DisposedError',
      needed > maximum && 'RangeError',
      world.used(0) + more * world.unit > world.capacity && 'StatusError',
    ] as const
    if (attempt(reasons, () => real.resize(length)) === undefined) return
    growable.length = length
    if (more > 0) {
      growable.pieces.push(more)
      growable.bytes.push(...new Array<number>(more).fill(0))
    }
    while (growable.pieces.length > 0 && sum(growable.pieces.slice(0, -1)) * world.unit >= length) {
      growable.bytes.length -= growable.pieces.pop() ?? 0
    }
    if (real.byteLength !== length || real.capacity !== sum(growable.pieces) * world.unit) {
      throw new Error(`${real.byteLength} of ${real.capacity} bytes, the model has ${length}`)
    }
  }
})

const writeGrowable = command('writeGrowable', [index, index, byte], (world, at, which, value) => {
  const growable = pick(world.growables, at)
  if (growable === undefined) return undefined
  return () => {
    const granule = within(which, Math.ceil(growable.length / world.unit))
    const view = viewGrowable(world, growable, granule)
    if (view === undefined) return
    requireAll(view.toArraySync(), growable.bytes[granule])
    view.fillSync(value)
    growable.bytes[granule] = value
  }
})

function viewGrowable(world: World, growable: GrowableModel, granule: number): DeviceBuffer<'u8'> | undefined {
  const byteOffset = granule * world.unit
  const reasons = [
    growable.real.disposed && 'DisposedError',
    byteOffset + known > growable.length && 'RangeError',
  ] as const
  return attempt(reasons, () =>
    DeviceBuffer.view(world.devices[0] as never, growable.real, 'u8', { byteOffset, length: known }),
  )?.value
}

/** All commands; those that make and use come more often than those that end. */
export const commands: fc.Arbitrary<fc.AsyncCommand<object, World>>[] = [
  reserve,
  reserve,
  create,
  create,
  createOdd,
  map,
  map,
  map,
  setAccess,
  getAccess,
  write,
  write,
  read,
  read,
  exportHandle,
  importHandle,
  retain,
  createMulticast,
  addDevice,
  addDevice,
  bind,
  bind,
  unbind,
  reserveGrowable,
  resize,
  writeGrowable,
  dispose,
  dispose,
]

export type { RangeModel }
