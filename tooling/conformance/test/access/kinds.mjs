// Creates memory of every kind of access on device 0, by name. Each function returns the memory, or one memory for each
// device that uses it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import {
  AddressRange,
  allocationGranularity,
  Device,
  DeviceBuffer,
  GrowableBuffer,
  IpcMemory,
  ManagedBuffer,
  MemoryPool,
  MulticastObject,
  multicastGranularity,
  PhysicalMemory,
  PinnedBuffer,
  RegisteredBuffer,
} from '@shoal/driver'
import { CreatedContext } from '@shoal/driver/context'
import { describeMemory, memoryProtocol } from '@shoal/types'

const [home, other] = [Device.get(0), Device.get(1)]
const both = [home, other]
const bytes = 1024

const plain = (owner = home) => DeviceBuffer.zeros(owner, 'u8', bytes)

function mapped(access, place = home) {
  const unit = allocationGranularity(place)
  const memory = PhysicalMemory.create(place, unit)
  return AddressRange.reserve(unit).map(memory, access === undefined ? {} : { access })
}

const grant = (...places) => places.map((place) => ({ place, access: 'readWrite' }))

async function fromPool(change, owner = home) {
  const pool = MemoryPool.create(home)
  if (owner !== home) pool.setAccess(owner, 'readWrite')
  const stream = owner.createStream()
  const buffer = pool.allocate(stream, 'u8', bytes)
  await stream.synchronize()
  change?.(pool)
  return buffer
}

function multicast(members) {
  const properties = { deviceCount: members.length, byteLength: 2 ** 21 }
  const byteLength = multicastGranularity(properties)
  const object = MulticastObject.create({ deviceCount: members.length, byteLength })
  for (const device of members) object.addDevice(device)
  for (const device of members) object.bindMemorySync(PhysicalMemory.create(device, byteLength))
  return AddressRange.reserve(byteLength).map(object)
}

/** Returns JSON that another process of the same program exports. That process lives as long as this one. */
async function exported(what) {
  const script = fileURLToPath(new URL('exporter.mjs', import.meta.url))
  const child = spawn(process.execPath, [script, what], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdout.setEncoding('utf8')
  const [line] = await once(child.stdout, 'data')
  return JSON.parse(line)
}

async function ncclRanks() {
  const { Communicator } = await import('@shoal/nccl')
  return Communicator.initAll(both)
}

export const kinds = {
  'plain memory': () => plain(),
  'plain memory by address': () => DeviceBuffer.fromAddress(home, plain().address, 'u8', bytes),
  'memory allocated on a stream': () => DeviceBuffer.allocateOn(home.createStream(), 'u8', bytes),
  'memory with peer access': () => {
    other.enablePeerAccess(home)
    return plain()
  },
  'memory after peer access was disabled': () => {
    other.enablePeerAccess(home)
    other.disablePeerAccess(home)
    return plain()
  },
  'memory of a created context without peer access': () => {
    other.enablePeerAccess(home)
    return plain(CreatedContext.create(home))
  },
  'memory of a created context with peer access': () => {
    const context = CreatedContext.create(home)
    other.primaryContext.enablePeerAccess(context)
    return plain(context)
  },
  'memory of the primary context while a created context has peer access': () => {
    other.primaryContext.enablePeerAccess(CreatedContext.create(home))
    return plain()
  },
  'a view of memory for each device': () => {
    const memory = plain()
    return both.map((device) => DeviceBuffer.view(device, memory, 'u8'))
  },
  'a view of a view': () => {
    const memory = plain()
    return both.map((device) =>
      DeviceBuffer.view(device, DeviceBuffer.view(other, DeviceBuffer.view(device, memory, 'u8'), 'u8'), 'u8'),
    )
  },
  'a view of memory with peer access': () => {
    other.enablePeerAccess(home)
    const memory = plain()
    return both.map((device) => DeviceBuffer.view(device, memory, 'u8').slice(8))
  },
  'mapped memory': () => mapped(),
  'memory mapped without access': () => mapped([]),
  'memory mapped without access while peer access is enabled': () => {
    other.enablePeerAccess(home)
    return mapped([])
  },
  'memory mapped for its device while peer access is enabled': () => {
    other.enablePeerAccess(home)
    return mapped()
  },
  'memory mapped for both devices': () => mapped(grant(...both)),
  'memory mapped only for the other device': () => mapped(grant(other)),
  'a view of mapped memory': () => {
    const memory = mapped()
    return both.map((device) => DeviceBuffer.view(device, memory, 'u8'))
  },
  'a view of memory mapped for both devices': () => {
    const memory = mapped(grant(...both))
    return both.map((device) => DeviceBuffer.view(device, memory, 'u8', { byteOffset: 64 }))
  },
  'a view of memory mapped without access': () => {
    const memory = mapped([])
    return both.map((device) => DeviceBuffer.view(device, memory, 'u8'))
  },
  'a description of mapped memory': () => describeMemory(mapped()),
  'an object with memory mapped only for the other device': () => {
    const memory = mapped(grant(other))
    return {
      get [memoryProtocol]() {
        return { ...memory[memoryProtocol] }
      },
    }
  },
  'mapped memory with access granted later': () => {
    const memory = mapped([])
    memory.setAccess(both, 'readWrite')
    return memory
  },
  'mapped memory with access revoked for the other device': (use) => {
    const memory = mapped(grant(...both))
    use(memory)
    memory.setAccess(other, 'none')
    return memory
  },
  'mapped memory with access revoked for both devices': (use) => {
    const memory = mapped(grant(...both))
    use(memory)
    memory.setAccess(both, 'none')
    return memory
  },
  'read-only mapped memory': () => {
    const memory = mapped()
    memory.setAccess(both, 'read')
    return memory
  },
  'host memory mapped without access': () => mapped([], { hostNode: 0 }),
  'host memory mapped for one device': () => mapped(grant(home), { hostNode: 0 }),
  'host memory mapped for both devices': () => mapped(grant(...both), { hostNode: 0 }),
  'growable memory': () => GrowableBuffer.reserve(home, 'u8', { maximumLength: 2 ** 22, length: bytes }),
  'growable memory shared with the other device': () => {
    const buffer = GrowableBuffer.reserve(home, 'u8', { maximumLength: 2 ** 22, sharedWith: [other] })
    return buffer.resize(bytes).buffer
  },
  'memory of a pool': () => fromPool(),
  'memory of a pool with peer access': () => {
    other.enablePeerAccess(home)
    return fromPool()
  },
  'memory of a pool with access for the other device': () => fromPool((pool) => pool.setAccess(other, 'readWrite')),
  'memory of a pool with access revoked for the other device': (use) => {
    let granted
    return fromPool((pool) => {
      granted = pool
      pool.setAccess(other, 'readWrite')
    }).then((buffer) => {
      use(buffer)
      granted.setAccess(other, 'none')
      return buffer
    })
  },
  "memory of a pool, allocated on the other device's stream": () => fromPool(undefined, other),
  "memory of a pool without access, allocated on the other device's stream": () =>
    fromPool((pool) => pool.setAccess(other, 'none'), other),
  'managed memory': () => ManagedBuffer.allocate(home, 'u8', bytes),
  'page-locked memory': () => PinnedBuffer.allocate(home, 'u8', bytes),
  'registered host memory': () => RegisteredBuffer.register(home, new ArrayBuffer(65_536)),
  'memory imported by a handle': async () => IpcMemory.open(home, await exported('memory')),
  'memory imported by a handle, with peer access': async () => {
    other.enablePeerAccess(home)
    return IpcMemory.open(home, await exported('memory')).buffer
  },
  'multicast memory': () => multicast(both),
  'multicast memory of one device': () => multicast([home]),
  "NCCL's memory": async () => {
    const [first] = await ncclRanks()
    return first.allocate({ dtype: 'u8', length: bytes })
  },
  "NCCL's memory without a communicator": async () => {
    const { NcclMemory } = await import('@shoal/nccl')
    return NcclMemory.allocate(home, { dtype: 'u8', length: bytes })
  },
  "a peer's part of a window": async () => {
    const ranks = await ncclRanks()
    const memory = await Promise.all(ranks.map((rank) => rank.allocate({ dtype: 'u8', length: bytes })))
    const windows = await Promise.all(ranks.map((rank, index) => rank.registerWindow(memory[index])))
    return [windows[0].peerMemory(1), windows[1].peerMemory(0)]
  },
  'symmetric memory': async () => {
    const { Session, UniqueId } = await import('@shoal/nvshmem')
    const session = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
    return session.allocate('u8', bytes)
  },
}

/** Kinds of memory that cannot be read. Kernels write to them only with special instructions. */
export const writeOnly = new Set(['multicast memory', 'multicast memory of one device'])
/** Kinds of memory that cannot be written. */
export const readOnly = new Set(['read-only mapped memory'])
