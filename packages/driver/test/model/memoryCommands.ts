import { AddressRange, DeviceBuffer, type MemoryAccess, MulticastObject, PhysicalMemory } from '@shoal/driver'
import fc from 'fast-check'
import {
  access,
  attempt,
  byte,
  bytesOf,
  command,
  countDone,
  device,
  index,
  type Listed,
  overlaps,
  pick,
  region,
  requireAll,
  resolve,
  room,
  some,
  within,
} from './step.js'
import {
  type HandleModel,
  known,
  type MappingModel,
  Memory,
  type MulticastModel,
  type PhysicalModel,
  type World,
} from './world.js'

export const reserve = command('reserve', [room, fc.nat(14)], (world, size, shift) => () => {
  const alignment = shift === 0 ? 0 : shift === 1 ? 3 : 2 ** (20 + shift)
  const made = attempt([size === 0 && 'RangeError', shift === 1 && 'RangeError'], () =>
    AddressRange.reserve(size * world.unit, { alignment }),
  )
  if (made !== undefined) world.ranges.push({ real: made.value, granules: size })
})

export const create = command('create', [device, some, fc.boolean()], (world, on, size, isShared) => () => {
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

export const createOdd = command('createOdd', [fc.integer({ min: 1, max: 2 ** 21 - 1 })], (world, byteLength) => () => {
  attempt(['RangeError'], () => PhysicalMemory.create(world.devices[0] as never, byteLength))
})

export const dispose = command('dispose', [fc.nat(5), index, fc.boolean()], (world, kind, at, isAsync) => {
  const lists = [world.ranges, world.physicals, world.multicasts, world.mappings, world.handles, world.growables]
  const found = pick<Listed>(lists[kind] ?? [], at)
  if (found === undefined) return undefined
  return async () => {
    const { real } = found as unknown as { real: Disposable & Partial<AsyncDisposable> }
    if (isAsync && real[Symbol.asyncDispose] !== undefined) await real[Symbol.asyncDispose]?.()
    else real[Symbol.dispose]()
    countDone()
  }
})

function targets(world: World): (PhysicalModel | MulticastModel)[] {
  return [...world.physicals, ...world.multicasts]
}

const grants = fc.option(fc.array(fc.tuple(device, access), { maxLength: 3 }))

export const map = command('map', [index, index, region, grants], (world, rangeAt, targetAt, wanted, given) => {
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
    // The driver accepts the same device twice in one list; the last entry counts.
    const reasons = [
      range.real.disposed && 'DisposedError',
      target.real.disposed && 'DisposedError',
      isWaiting && (isKnown ? 'RangeError' : 'StatusError'),
      (length <= 0 || memoryOffset + length > available) && 'RangeError',
      offset + length > range.granules && 'RangeError',
      world.mappedIn(range).some((one) => overlaps(one, offset, length)) && 'RangeError',
      isOutsideTeam && 'StatusError',
      // Drivers can only map whole memory.
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

/** Returns the devices of the memory. Imported memory counts for the device of its import. */
function ownersOf({ real }: PhysicalModel): readonly number[] {
  return real._contexts.map(({ device: { ordinal } }) => ordinal)
}

function addedTo({ added }: MulticastModel): readonly number[] {
  return [...added]
}

export const setAccess = command('setAccess', [index, device, access], (world, at, on, what) => {
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

export const getAccess = command('getAccess', [index, device], (world, at, on) => {
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

export const write = command('write', [index, device, index, byte], (world, at, on, which, value) => {
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

export const read = command('read', [index, device, index], (world, at, on, which) => {
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

export const exportHandle = command('export', [index], (world, at) => {
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

export const importHandle = command('import', [index, device, fc.boolean()], (world, at, on, isMixedUp) => {
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

export const retain = command('retain', [index, index, device], (world, at, which, on) => {
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
    // Another mapping may follow its end.
    if (granule >= mapping.granules) return
    const address = mapping.real.address + BigInt(granule * world.unit + 5)
    const place = world.devices[on] as never
    const made = attempt(reasons, () => PhysicalMemory.retain(place, address, size * world.unit))
    if (made !== undefined && mapping.memory !== undefined) {
      world.physicals.push({ real: made.value, memory: mapping.memory, canExport: mapping.canExport })
    }
  }
})
