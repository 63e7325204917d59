import { MulticastObject } from '@shoal/driver'
import fc from 'fast-check'
import { attempt, bytesOf, command, device, index, often, overlaps, pick, resolve, smallRegion, some } from './step.js'
import { Team } from './world.js'

export const createMulticast = command(
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

export const addDevice = command('addDevice', [index, device], (world, at, on) => {
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

export const bind = command(
  'bind',
  [index, index, smallRegion, fc.boolean()],
  (world, at, sourceAt, wanted, byAddress) => {
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
  },
)

export const unbind = command('unbind', [index, device, index], (world, at, anyDevice, which) => {
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
