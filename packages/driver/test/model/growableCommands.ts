import { DeviceBuffer, GrowableRange } from '@shoal/driver'
import fc from 'fast-check'
import { attempt, byte, command, index, pick, requireAll, room, some, within } from './step.js'
import { type GrowableModel, known, type World } from './world.js'

export const reserveGrowable = command('reserveGrowable', [room, some], (world, maximum, step) => () => {
  const reasons = [(maximum === 0 || step === 0) && 'RangeError'] as const
  const options = { maximumBytes: maximum * world.unit, stepBytes: step * world.unit }
  const made = attempt(reasons, () => GrowableRange.reserve(world.devices[0] as never, options))
  if (made === undefined) return
  world.growables.push({ real: made.value, maximum, step, length: 0, pieces: [], bytes: [] })
})

function sum(list: readonly number[]): number {
  return list.reduce((all, one) => all + one, 0)
}

export const resize = command('resize', [index, fc.nat(8 * 4)], (world, at, quarters) => {
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

export const writeGrowable = command('writeGrowable', [index, index, byte], (world, at, which, value) => {
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
