/** NVSHMEM calls whose operands are disposed of while the calls wait for their turn, and calls that are aborted. */
import { setTimeout as pause } from 'node:timers/promises'
import { DeviceBuffer, PinnedBuffer, Stream } from '@shoal/driver'
import { AbortedError, DisposedError, StatusError, TimeoutError } from '@shoal/types'
import { arrays, type Block, bytesOf } from '../memory.js'
import { Mismatch, type Operation } from '../operation.js'
import { type Shmem, shmemOf } from '../shmem.js'
import type { World } from '../world.js'

/** Makes the session's thread wait for the default stream, so that later calls have to wait for their turn. */
async function keepBusy(world: World, shmem: Shmem): Promise<{ readonly busy: Promise<unknown> }> {
  const { deviceOrdinal } = shmem.session
  const legacy = world.streams.find(({ queue }) => queue.kind === 'legacy' && queue.device === deviceOrdinal)
  if (legacy !== undefined) await world.delay(legacy, world.one([0.1, 0.3, 1]))
  const scratch = await shmem.session.allocate('u8', 8)
  const copies = [scratch.copyFrom(new Uint8Array(8)), scratch.copyFrom(new Uint8Array(8))]
  return { busy: Promise.all([...copies, scratch.dispose()]) }
}

const disposeWhileQueued: Operation = {
  name: 'dispose of operands of queued calls',
  weight: 8,
  async run(world) {
    const shmem = shmemOf(world)
    const { session } = shmem
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const { dtype, length } = symmetric
    const caller = world.one(shmem.all)
    const pe = world.one(shmem.all)
    const target = symmetric.blocks[pe] as Block
    const accesses = [{ block: target, caller, write: true }]
    await shmem.prepare(accesses)
    await shmem.idle()
    const { busy } = await keepBusy(world, shmem)
    const owner = world.devices[session.deviceOrdinal] as never
    const values = world.values(dtype, length)
    const local = world.chance(0.5)
      ? DeviceBuffer.from(owner, values as never)
      : PinnedBuffer.from(owner, values as never, { dtype } as never)
    const stream = Stream.create(owner, { nonBlocking: world.chance(0.5) })
    const options = { pe, stream }
    const { buffer } = symmetric
    const calls: (() => Promise<unknown>)[] = [
      () => session.put(buffer, local, { pe }),
      () => session.putNonBlocking(buffer, local, { pe }),
      () => session.putOnStream(buffer, local, options),
      () => session.putStrided(buffer, local, { pe, count: length }),
      () => session.get(local, buffer, { pe }),
      () => session.getOnStream(local, buffer, options),
      () => session.getNonBlockingOnStream(local, buffer, options),
      () => session.putElementOnStream(buffer, values[0] as never, options),
      () => session.quietOnStream({ stream }),
      () => session.register(local).then((registration) => registration.dispose()),
    ]
    const told = `${symmetric.name} of PE ${pe} by PE ${caller}`
    const made: Promise<boolean>[] = []
    const count = world.random.integer(1, 5)
    for (let index = 0; index < count; index += 1) {
      const which = world.random.integer(0, calls.length - 1)
      const call = calls[which] as () => Promise<unknown>
      // Memory that is already registered is refused.
      const refusals = which === calls.length - 1 ? [DisposedError, StatusError] : [DisposedError]
      if (shmem.pe === caller) made.push(world.either(`call ${which}: ${told}`, call(), refusals))
    }
    const way = world.random.integer(0, 3)
    if (world.chance(0.3)) await pause(0)
    if (way !== 1) local.dispose()
    if (way !== 0) stream.dispose()
    await busy
    await Promise.all(made)
    await session.quiet()
    await world.synchronizeDevice(session.deviceOrdinal)
    local.dispose()
    stream.dispose()
    shmem.use(accesses)
    target.forget()
    return `${told}, way ${way}`
  },
}

const disposeSymmetricWhileQueued: Operation = {
  name: 'dispose of symmetric memory behind queued calls',
  weight: 4,
  async run(world) {
    const shmem = shmemOf(world)
    const { session } = shmem
    await shmem.idle()
    const { busy } = await keepBusy(world, shmem)
    const buffer = await session.allocate('i32', 16, { zeroed: true })
    const array = Int32Array.from({ length: 16 }, () => world.random.integer(0, 1000))
    const copied = buffer.copyFrom(array)
    const increments = session.atomics.add(buffer, 1, { pe: shmem.pe })
    const read = buffer.toArray()
    const disposed = buffer.dispose()
    const late = world.rejects('a read behind dispose()', buffer.toArray(), [DisposedError])
    await busy
    await copied
    await increments
    array[0] = (array[0] as number) + 1
    world.compare('memory that is disposed of behind the read', bytesOf(await read), {
      bytes: bytesOf(array),
      defined: new Uint8Array(64).fill(1),
    })
    await disposed
    await late
    return 'i32 × 16'
  },
}

const giveUp: Operation = {
  name: 'give a call up',
  weight: 3,
  async run(world) {
    const shmem = shmemOf(world)
    const { session } = shmem
    const symmetric = world.pick(shmem.live())
    // After an aborted call, the next calls are refused, so the PEs would no longer make the same calls.
    if (symmetric === undefined || shmem.peCount > 1) return undefined
    const target = symmetric.blocks[0] as Block
    const accesses = [{ block: target, caller: 0, write: true }]
    await shmem.prepare(accesses)
    await shmem.idle()
    const { busy } = world.chance(0.7) ? await keepBusy(world, shmem) : { busy: Promise.resolve() }
    const array = new arrays[symmetric.dtype](symmetric.length)
    const controller = new AbortController()
    const way = world.random.integer(0, 2)
    const wait = way === 0 ? { timeout: 0 } : way === 1 ? { timeout: 1 } : { signal: controller.signal }
    const promise: Promise<unknown> = world.chance(0.5)
      ? session.put(symmetric.buffer, array as never, { pe: 0, ...wait })
      : symmetric.buffer.copyFrom(array as never, wait)
    const call = world.either('a call that is given up', promise, [TimeoutError, AbortedError])
    const behind = world.either('what was under way', busy, [TimeoutError, AbortedError])
    if (world.chance(0.5)) await pause(0)
    controller.abort()
    await call
    await behind
    for (let tries = 0; session.stuckIn !== undefined || session.waitingFor !== undefined; tries += 1) {
      if (tries > 60_000) throw new Mismatch(`the session stays in ${session.stuckIn ?? session.waitingFor}`)
      await pause(1)
    }
    await session.quiet()
    shmem.use(accesses)
    await shmem.idle()
    target.forget()
    return `${symmetric.name}, way ${way}`
  },
}

export const nvshmemInFlight: readonly Operation[] = [disposeWhileQueued, disposeSymmetricWhileQueued, giveUp]
