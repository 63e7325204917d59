/** NVSHMEM: symmetric memory, transfers, atomics and signals. */
import { DeviceBuffer } from '@shoal/driver'
import type { SymmetricBuffer } from '@shoal/nvshmem'
import { BusyError, DisposedError } from '@shoal/types'
import { elementsOf } from '../arithmetic.js'
import { arrays, type Block, bytesOf, type Memory, type ModelType, modelTypes } from '../memory.js'
import type { Operation } from '../operation.js'
import { own, type Shmem, type Symmetric, sessionStream, shmemOf, whole } from '../shmem.js'
import type { World } from '../world.js'
import { hostArray } from './hostArray.js'
import { someLength } from './making.js'
import { nvshmemInFlight } from './nvshmemInFlight.js'
import { nvshmemTeams } from './nvshmemTeams.js'

const allocate: Operation = {
  name: 'allocate symmetric memory',
  weight: 8,
  async run(world) {
    const shmem = shmemOf(world)
    if (shmem.live().length > 8) return undefined
    const dtype = world.one(modelTypes)
    const length = someLength(world)
    const zeroed = world.chance(0.5)
    const options = zeroed ? { zeroed } : { alignment: world.one([undefined, 64, 256]) }
    const buffer = await shmem.session.allocate(dtype, length, options)
    const symmetric = shmem.add(buffer as SymmetricBuffer<ModelType>)
    if (zeroed) for (const block of symmetric.blocks) block.write(0, new Uint8Array(block.bytes.length))
    shmem.use([])
    return `${symmetric.name}: ${dtype} × ${length}`
  },
}

const free: Operation = {
  name: 'dispose of symmetric memory',
  weight: 3,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const { memory, buffer } = symmetric
    if (memory !== undefined) await world.order(undefined, own(symmetric, [0], true))
    const promise = buffer.dispose()
    if (memory !== undefined) memory.root.disposed = true
    world.equal(`disposed of ${symmetric.name}`, buffer.disposed, true)
    await world.rejects(`toArray() of ${symmetric.name}`, buffer.toArray(), [DisposedError])
    await world.rejects('a put to it', shmem.session.put(buffer, buffer, { pe: 0 }), [DisposedError])
    world.later(`dispose() of ${symmetric.name}`, promise, () => {})
    return symmetric.name
  },
}

const copyIn: Operation = {
  name: 'copy into symmetric memory',
  weight: 6,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const accesses = own(symmetric, shmem.all, true)
    const { array, bytes, kind, refusals } = hostArray(world, symmetric.dtype, symmetric.length)
    const told = `${symmetric.name} from ${kind}`
    if (refusals.length > 0) {
      const { ended } = await shmem.call(symmetric.buffer, 'copyFrom', array)
      await world.rejects(told, ended, refusals)
      return `${told}, refused`
    }
    await shmem.prepare(accesses)
    for (const block of symmetric.blocks) block.write(0, bytes)
    const { ended } = await shmem.call(symmetric.buffer, 'copyFrom', array)
    shmem.use(accesses)
    // The call reads the array only when its turn comes.
    world.later(told, ended, () => {})
    return told
  },
}

const fill: Operation = {
  name: 'fill symmetric memory',
  weight: 3,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const accesses = own(symmetric, shmem.all, true)
    await shmem.prepare(accesses)
    const value = world.values(symmetric.dtype, 1)[0] as number
    const { ended } = await shmem.call(symmetric.buffer, 'fill', value)
    shmem.use(accesses)
    const filled = new arrays[symmetric.dtype](symmetric.length).fill(value as never)
    for (const block of symmetric.blocks) block.write(0, bytesOf(filled))
    world.later(symmetric.name, ended, () => {})
    return `${symmetric.name} with ${value}`
  },
}

const read: Operation = {
  name: 'read symmetric memory',
  weight: 8,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const accesses = own(symmetric, shmem.all, false)
    await shmem.prepare(accesses)
    const expected = whole(symmetric, shmem.pe)
    if (world.chance(0.5)) {
      const { ended } = await shmem.call(symmetric.buffer, 'toArray')
      shmem.use(accesses)
      world.later(symmetric.name, ended, (found: ArrayBufferView) => {
        world.compare(symmetric.name, bytesOf(found), expected)
      })
      return symmetric.name
    }
    const { array, bytes, kind, refusals, check } = hostArray(world, symmetric.dtype, symmetric.length)
    const told = `${symmetric.name} into ${kind}`
    const { ended } = await shmem.call(symmetric.buffer, 'copyTo', array)
    if (refusals.length > 0) {
      await world.rejects(told, ended, refusals)
      return `${told}, refused`
    }
    shmem.use(accesses)
    world.later(told, ended, () => {
      world.compare(told, bytes, expected)
      check()
    })
    return told
  },
}

const readAtOnce: Operation = {
  name: 'read symmetric memory, blocking',
  weight: 2,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const accesses = own(symmetric, shmem.all, false)
    await shmem.prepare(accesses)
    if (shmem.session.waitingFor !== undefined) {
      // The running call may have returned in the meantime.
      try {
        symmetric.buffer.toArraySync()
      } catch (error) {
        if (!(error instanceof BusyError)) throw error
      }
    }
    await shmem.idle()
    const found = symmetric.buffer.toArraySync()
    world.compare(symmetric.name, bytesOf(found), whole(symmetric, shmem.pe))
    return symmetric.name
  },
}

/** Returns local memory of the same length as symmetric memory, if there is any. */
function localFor(world: World, shmem: Shmem, { dtype, length, memory }: Symmetric): Memory | undefined {
  return world.pick(
    world
      .liveMemories(dtype, length)
      .filter(({ root }) => root.device === shmem.session.deviceOrdinal && root !== memory?.root),
  )
}

const put: Operation = {
  name: 'put',
  weight: 10,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const caller = world.one(shmem.all)
    const pe = world.one(shmem.all)
    const target = symmetric.blocks[pe] as Block
    const accesses = [{ block: target, caller, write: true }]
    const { session } = shmem
    const local = localFor(world, shmem, symmetric)
    const told = `${symmetric.name} of PE ${pe} by PE ${caller}`
    if (local === undefined || world.chance(0.4)) {
      await shmem.prepare(accesses)
      const { array, bytes, kind, refusals } = hostArray(world, symmetric.dtype, symmetric.length)
      if (refusals.length > 0) {
        await world.rejects(told, (await shmem.call(session, 'put', symmetric.buffer, array, { pe })).ended, refusals)
        return `${told} from ${kind}, refused`
      }
      if (shmem.pe === caller)
        world.later(told, (await shmem.call(session, 'put', symmetric.buffer, array, { pe })).ended, () => {})
      shmem.use(accesses)
      target.write(0, bytes)
      return `${told} from ${kind}`
    }
    const uses = [{ block: local.root.block, write: false }]
    const expected = local.root.block.expected(local.offset, local.byteLength)
    const way = world.random.integer(0, 3)
    if (way === 3) {
      const stream = sessionStream(world, shmem)
      const call = (): Promise<unknown> =>
        session.putOnStream(symmetric.buffer, local.buffer, { pe, stream: stream.stream })
      await shmem.onStream(stream, () => (shmem.pe === caller ? call() : Promise.resolve()), accesses, uses)
    } else {
      await shmem.prepare(accesses, uses)
      const options = { pe, count: symmetric.length }
      const { buffer } = symmetric
      if (shmem.pe === caller) {
        const promise: Promise<unknown> =
          way === 0
            ? (await shmem.call(session, 'put', buffer, local.buffer, { pe })).ended
            : way === 1
              ? Promise.all([session.putNonBlocking(buffer, local.buffer, { pe }), session.quiet()])
              : (await shmem.call(session, 'putStrided', buffer, local.buffer, options)).ended
        world.later(told, promise, () => {})
      }
      shmem.use(accesses, uses)
    }
    target.copy(0, expected)
    return `${told} from ${local.name}`
  },
}

const get: Operation = {
  name: 'get',
  weight: 8,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const pe = world.one(shmem.all)
    const block = symmetric.blocks[pe] as Block
    const expected = whole(symmetric, pe)
    const accesses = shmem.all.map((caller) => ({ block, caller, write: false }))
    const { session } = shmem
    const local = localFor(world, shmem, symmetric)
    const told = `${symmetric.name} of PE ${pe}`
    if (local === undefined || world.chance(0.5)) {
      await shmem.prepare(accesses)
      const { array, bytes, kind, refusals, check } = hostArray(world, symmetric.dtype, symmetric.length)
      const { ended } = await shmem.call(session, 'get', array, symmetric.buffer, { pe })
      if (refusals.length > 0) {
        await world.rejects(told, ended, refusals)
        return `${told} into ${kind}, refused`
      }
      shmem.use(accesses)
      world.later(told, ended, () => {
        world.compare(told, bytes, expected)
        check()
      })
      return `${told} into ${kind}`
    }
    const uses = [{ block: local.root.block, write: true }]
    if (world.chance(0.3)) {
      const stream = sessionStream(world, shmem)
      const options = { pe, stream: stream.stream }
      await shmem.onStream(stream, () => session.getOnStream(local.buffer, symmetric.buffer, options), accesses, uses)
    } else {
      await shmem.prepare(accesses, uses)
      const [name, options] = world.chance(0.3)
        ? ['getStrided', { pe, count: symmetric.length }]
        : (['get', { pe }] as const)
      world.later(told, (await shmem.call(session, name, local.buffer, symmetric.buffer, options)).ended, () => {})
      shmem.use(accesses, uses)
    }
    local.root.block.copy(local.offset, expected)
    return `${told} into ${local.name}`
  },
}

const element: Operation = {
  name: 'put or get an element',
  weight: 5,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const pe = world.one(shmem.all)
    const caller = world.one(shmem.all)
    const block = symmetric.blocks[pe] as Block
    const index = world.random.integer(0, symmetric.length - 1)
    const size = arrays[symmetric.dtype].BYTES_PER_ELEMENT
    const told = `element ${index} of ${symmetric.name} of PE ${pe} by PE ${caller}`
    const { session } = shmem
    const write = world.chance(0.5)
    const accesses = [{ block, caller, write }]
    await shmem.prepare(accesses)
    if (write) {
      const values = world.values(symmetric.dtype, 1)
      if (shmem.pe === caller) {
        const { ended } = await shmem.call(session, 'putElement', symmetric.buffer, values[0], { pe, index })
        world.later(told, ended, () => {})
      }
      block.write(index * size, bytesOf(values))
    } else if (shmem.pe === caller) {
      const expected = block.expected(index * size, size)
      const { ended } = await shmem.call(session, 'getElement', symmetric.buffer, { pe, index })
      world.later(told, ended, (value) => {
        if (symmetric.dtype.startsWith('f')) return // a NaN may change its bits as a number
        world.compare(told, bytesOf(arrays[symmetric.dtype].of(value)), expected)
      })
    }
    shmem.use(accesses)
    return `${told}, ${write ? 'put' : 'got'}`
  },
}

const atomic: Operation = {
  name: 'atomic',
  weight: 8,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live().filter(({ dtype }) => ['i32', 'u32', 'i64'].includes(dtype)))
    if (symmetric === undefined) return undefined
    const { dtype } = symmetric
    const pe = world.one(shmem.all)
    const caller = world.one(shmem.all)
    const block = symmetric.blocks[pe] as Block
    const index = world.random.integer(0, symmetric.length - 1)
    const size = arrays[dtype].BYTES_PER_ELEMENT
    const before = block.expected(index * size, size)
    const old = BigInt(elementsOf(dtype, before.bytes)[0] as number)
    const value = world.values(dtype, 1)[0] as number
    const right = BigInt(value)
    const ways = {
      fetch: old,
      set: right,
      swap: right,
      fetchAdd: old + right,
      add: old + right,
      increment: old + 1n,
      fetchIncrement: old + 1n,
      fetchAnd: old & right,
      or: old | right,
      fetchXor: old ^ right,
      compareSwap: right,
    } as const
    const way = world.one(Object.keys(ways) as (keyof typeof ways)[])
    const accesses = [{ block, caller, write: true }]
    await shmem.prepare(accesses)
    const told = `${way} of element ${index} of ${symmetric.name} of PE ${pe} by PE ${caller}`
    // The comparison uses the value that the model expects, so every byte must be defined.
    if (way === 'compareSwap' && before.defined.includes(0)) return undefined
    if (shmem.pe === caller) {
      const operands = way === 'compareSwap' ? [dtype === 'i64' ? old : Number(old), value] : [value]
      const hasNone = way === 'fetch' || way === 'increment' || way === 'fetchIncrement'
      const args = [symmetric.buffer, ...(hasNone ? [] : operands), { pe, index }]
      const { ended } = await shmem.call(shmem.session.atomics, way, ...args)
      world.later(told, ended, (found: unknown) => {
        if (found !== undefined) world.compare(told, bytesOf(arrays[dtype].of(found as never)), before)
      })
    }
    shmem.use(accesses)
    const result = dtype === 'i64' ? ways[way] : Number(BigInt.asIntN(64, ways[way]))
    const after = arrays[dtype].of(result as never)
    const keepsUndefined = before.defined.includes(0) && way !== 'set' && way !== 'swap'
    if (keepsUndefined) block.forget(index * size, size)
    else block.write(index * size, bytesOf(after))
    return told
  },
}

const peerView: Operation = {
  name: 'read memory of a peer by CUDA',
  weight: 3,
  async run(world) {
    const shmem = shmemOf(world)
    const symmetric = world.pick(shmem.live())
    if (symmetric === undefined) return undefined
    const pe = world.one(shmem.all)
    const accesses = shmem.all.map((caller) => ({ block: symmetric.blocks[pe] as Block, caller, write: false }))
    await shmem.prepare(accesses)
    await shmem.idle()
    const peer = await symmetric.buffer.peer(pe)
    if (peer === undefined) return undefined
    const device = world.devices[shmem.session.deviceOrdinal] as never
    const view = DeviceBuffer.view(device, peer, symmetric.dtype)
    const found = await view.toArray()
    world.compare(`${symmetric.name} of PE ${pe}`, bytesOf(found as ArrayBufferView), whole(symmetric, pe))
    return `${symmetric.name} of PE ${pe}`
  },
}

const signals: Operation = {
  name: 'signal',
  weight: 3,
  async run(world) {
    const shmem = shmemOf(world)
    const { session } = shmem
    const caller = world.one(shmem.all)
    const pe = world.one(shmem.all)
    const value = BigInt(world.random.integer(1, 1000))
    const stream = sessionStream(world, shmem)
    const signal = await session.allocate('u64', 2, { zeroed: true })
    const index = world.random.integer(0, 1)
    const op = world.one(['set', 'add', undefined] as const)
    if (shmem.pe === caller) {
      await session.signals.signalOnStream(signal, { pe, index, value, op, stream: stream.stream })
      await stream.stream.synchronize()
    }
    if (shmem.pe === pe) {
      const waiting = sessionStream(world, shmem)
      const until = { index, comparison: '>=', value, stream: waiting.stream } as const
      await session.signals.waitForSignalOnStream(signal, until)
      await waiting.stream.synchronize()
      world.equal('a signal', await session.signals.fetch(signal, { index }), value)
      world.equal('the other signal', await session.signals.fetch(signal, { index: 1 - index }), 0n)
    }
    await signal.dispose()
    return `from PE ${caller} to PE ${pe}`
  },
}

export const nvshmem: readonly Operation[] = [
  allocate,
  free,
  copyIn,
  fill,
  read,
  readAtOnce,
  put,
  get,
  element,
  atomic,
  ...nvshmemTeams,
  peerView,
  signals,
  ...nvshmemInFlight,
]
