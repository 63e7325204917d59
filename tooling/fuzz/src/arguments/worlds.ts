import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Callable, Parameter } from './contract.js'
import { graphWorld } from './graphWorld.js'

type Maker = () => unknown
type Makers = { readonly [name: string]: Maker }

/** A package with what lives in it. */
export interface World {
  readonly module: { readonly [name: string]: unknown }
  /** Living objects of the exported classes. */
  readonly living: { readonly [className: string]: (method: string) => unknown }
  /** Right values of parameters: by `FUNCTION#parameter`, `#parameter`, or the type. */
  readonly values: Makers
  /** Objects that are right for another package, another copy or another device. */
  readonly strangers: Makers
  /** Called when all was asked. */
  readonly end?: () => unknown
}

/** The right value of a parameter. @throws Error for one that no rule knows */
export function rightValue(world: World, api: string, parameter: Parameter): unknown {
  const { name, type, kinds } = parameter
  // Errors name the function that was called.
  if (name === 'api') return api
  const maker = world.values[`${api}#${name}`] ?? world.values[`#${name}`] ?? world.values[type]
  if (maker !== undefined) return maker()
  if (kinds.includes('undefined')) return undefined
  throw new Error(`no right value is known for ${api}#${name}: ${type}`)
}

/** As users write it. */
export function apiOf({ place, owner, name }: Callable): string {
  return place === 'export' ? name : place === 'new' ? `new ${owner}` : `${owner}.${name}`
}

const general: Makers = {
  '#fn': () => () => undefined,
  '#dtype': () => 'f32',
  '#length': () => 4,
  '#byteLength': () => 2 ** 21,
  '#maximumBytes': () => 2 ** 22,
  '#maximumLength': () => 1024,
  '#content': () => 'memory',
  '#grid': () => 1,
  '#block': () => 32,
  '#blockSize': () => 32,
  '#blockCount': () => 1,
  '#granularity': () => 'minimum',
  '#status': () => 1,
  '#limit': () => 'STACK_SIZE',
}

const sharing = (ffi: typeof import('@shoal/ffi')): Makers => ({
  '#libraries': () => [],
  'DescriptorServer.listen#path': () => join(tmpdir(), `shoal-${randomUUID()}`),
  'DescriptorSocket.connect#path': () => join(tmpdir(), `shoal-${randomUUID()}`),
  'DescriptorSocket.adopt#descriptor': () => 10_000,
  'new DescriptorSocket#descriptor': () => 10_000,
  '#message': () => ({ bytes: new Uint8Array(1) }),
  '#socket': () => ffi.DescriptorSocket.pair()[0],
})

/** Objects that `driver` and `runtime` both have, given a device of either. */
async function cudaWorld(name: 'driver' | 'runtime'): Promise<World> {
  const ffi = await import('@shoal/ffi')
  const driver = await import('@shoal/driver')
  const runtime = await import('@shoal/runtime')
  const base = name === 'driver' ? driver : runtime
  const others = name === 'driver' ? runtime : driver
  const device = base.Device.get(0)
  const peer = base.Device.get(1)
  const context = (device as { primaryContext: import('@shoal/driver').Context }).primaryContext
  const stream = (): import('@shoal/driver').Stream => device.createStream()
  const allocate = (): import('@shoal/driver').DeviceBuffer<'f32'> =>
    name === 'driver'
      ? driver.DeviceBuffer.allocate(driver.Device.get(0), 'f32', 4)
      : (runtime.DeviceBuffer.allocate('f32', 4) as never)
  const word = (): unknown => allocate().slice(0, 1)
  const event = (): import('@shoal/driver').Event => device.createEvent({ timing: true })
  const physical = (): import('@shoal/driver').PhysicalMemory =>
    device.createPhysicalMemory(2 ** 21, { handleTypes: 'posix-fd' } as never)
  const image = `.version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .b8 table[64];
.visible .entry axpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n) { ret; }`
  const pool = (): import('@shoal/driver').MemoryPool => device.createMemoryPool({ handleTypes: 'posix-fd' } as never)
  let keeping = device.createCachingPool()
  // The same one for a buffer and for the pool that is asked about it.
  const caching = (): import('@shoal/driver').CachingPool => {
    if (keeping.disposed) keeping = device.createCachingPool()
    return keeping
  }
  const managed = (): unknown =>
    name === 'driver'
      ? driver.ManagedBuffer.allocate(driver.Device.get(0), 'f32', 4)
      : runtime.ManagedBuffer.allocate('f32', 4)
  const pinned = (): unknown =>
    name === 'driver'
      ? driver.PinnedBuffer.allocate(driver.Device.get(0), 'f32', 4)
      : runtime.PinnedBuffer.allocate('f32', 4)
  const grown = (): unknown => device.createGrowableBuffer('f32', { maximumLength: 1024, length: 4 })
  const range = (): unknown =>
    name === 'driver'
      ? driver.GrowableRange.reserve(driver.Device.get(0), { maximumBytes: 2 ** 22 })
      : runtime.GrowableRange.reserve({ maximumBytes: 2 ** 22 })
  const multicast = (): import('@shoal/driver').MulticastObject => {
    const object = base.MulticastObject.create({
      deviceCount: 2,
      byteLength: 2 ** 21,
      handleTypes: 'posix-fd',
    } as never)
    return object.addDevice(base.Device.get(0)).addDevice(base.Device.get(1))
  }
  const mapped = (): unknown =>
    base.AddressRange.reserve(2 ** 21).map(physical(), { access: [{ place: device, access: 'readWrite' }] } as never)
  const module = (): import('@shoal/driver').Module => driver.Module.loadSync(driver.Device.get(0), image)
  const kernel = (): import('@shoal/driver').Kernel<['f32', 'ptr', 'ptr', 'i32']> =>
    module().kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
  const args = (): unknown[] => [2, allocate(), allocate(), 4]
  const exported = pool()
  const second = allocate()
  second.dispose()
  const gone = stream()
  gone.dispose()
  const elsewhere = peer.createStream()
  return {
    module: base,
    living: {
      Context: () => context,
      CudaVersion: () => base.CudaVersion.from(13000),
      Device: () => device,
      Resource: allocate,
      DeviceBuffer: allocate,
      Event: event,
      GrowableBuffer: grown,
      GrowableRange: range,
      IpcMemory: () => undefined,
      ManagedBuffer: managed,
      CachingPool: caching,
      PreparedCopies: () =>
        driver.prepareCopies(driver.Device.get(0), [{ target: allocate() as never, source: allocate() as never }]),
      RegisteredBuffer: () => driver.RegisteredBuffer.register(driver.Device.get(0), new ArrayBuffer(64)),
      MemoryPool: pool,
      PhysicalMemory: physical,
      PinnedBuffer: pinned,
      Stream: stream,
      Module: module,
      Kernel: kernel,
      PreparedLaunch: () =>
        kernel().prepare({ grid: 1, block: 32 }, ...(args() as never as [number, never, never, number])),
      DescriptorServer: () => ffi.DescriptorServer.listen(join(tmpdir(), `shoal-${randomUUID()}`)),
      DescriptorSocket: () => ffi.DescriptorSocket.pair()[0],
      MulticastObject: multicast,
      DescriptorHandle: () => physical().export('posix-fd' as never),
      FabricHandle: () => new base.FabricHandle(new Uint8Array(64), { content: 'memory', byteLength: 8 } as never),
      AddressRange: () => base.AddressRange.reserve(2 ** 22),
      MappedRange: () => {
        const memory = physical()
        return base.AddressRange.reserve(2 ** 21).map(memory, { access: [] } as never)
      },
    },
    values: {
      ...general,
      ...sharing(ffi),
      DeviceOrContext: () => device,
      '#owner': () => device,
      '#device': () => device,
      '#peer': () => peer,
      '#place': () => device,
      '#places': () => device,
      '#access': () => 'readWrite',
      'GrowableRange.reserve#access': () => undefined,
      'MulticastObject.unbind#device': () => device,
      'MulticastObject.unbind#byteLength': () => 2 ** 21,
      'number | DeviceLike': () => device,
      '#array': () => new Float32Array(4),
      '#source': () => new Float32Array(4),
      '#target': () => new Float32Array(4),
      '#value': () => 1,
      'setPointerAttribute#value': () => true,
      '#stream': stream,
      '#memory': allocate,
      'MulticastObject.bindAddress#memory': mapped,
      'MulticastObject.bindAddressSync#memory': mapped,
      'rangeAttribute#memory': managed,
      'rangeAttributes#memory': managed,
      'AddressRange.map#memory': physical,
      'MulticastObject.bindMemory#memory': physical,
      'MulticastObject.bindMemorySync#memory': physical,
      '#address': () => allocate().address,
      'PhysicalMemory.retain#address': () => 2n ** 40n,
      'AddressRange.reserve#address': () => undefined,
      '#handle': stream,
      'Stream.borrow#handle': () => stream().handle,
      'Stream.adopt#handle': () => stream().handle,
      'PhysicalMemory.import#handle': () => physical().export('posix-fd' as never),
      'MemoryPool.import#handle': () => pool().export('posix-fd' as never),
      'MulticastObject.import#handle': () => multicast().export('posix-fd' as never),
      'sendHandle#handle': () => physical().export('posix-fd' as never),
      'openIpcEvent#handle': () => base.ipcEventHandle(device.createEvent({ interprocess: true }) as never),
      'IpcMemory.open#handle': () => base.ipcMemoryHandle(allocate() as never),
      '#event': event,
      'ipcEventHandle#event': () => device.createEvent({ interprocess: true }),
      '#start': () => 0,
      '#end': () => 4,
      'elapsedMs#start': event,
      'elapsedMs#end': event,
      '#attribute': () => 'WARP_SIZE',
      'Device.peerAttribute#attribute': () => 'ACCESS_SUPPORTED',
      'pointerAttribute#attribute': () => 'MEMORY_TYPE',
      'setPointerAttribute#attribute': () => 'SYNC_MEMOPS',
      'rangeAttribute#attribute': () => 'READ_MOSTLY',
      'rangeAttributes#attributes': () => ['READ_MOSTLY'],
      'Kernel.attribute#attribute': () => 'NUM_REGS',
      '#attributes': () => ['MEMORY_TYPE'],
      '#pointer': () => exported.exportPointer(exported.allocate(stream(), 'f32', 4) as never),
      'pointerInfo#pointer': () => allocate(),
      'MemoryPool.exportPointer#buffer': () => exported.allocate(stream(), 'f32', 4),
      'CachingPool.recordUse#buffer': () => caching().allocate(stream(), 'f32', 4),
      '#buffer': allocate,
      'RegisteredBuffer.register#buffer': () => new ArrayBuffer(64),
      '#copies': () => [{ target: allocate(), source: allocate() }],
      '#operations': () => [{ operation: 'write', memory: word(), value: 1 }],
      'Stream.writeValue#memory': word,
      'Stream.waitValue#memory': word,
      'Stream.waitValue#value': () => 0,
      '#pool': pool,
      '#ordinal': () => 0,
      '#pciBusId': () => '0000:00:00.0',
      '#advice': () => 'readMostly',
      'ManagedBuffer.advise#place': () => undefined,
      'ManagedBuffer.unadvise#place': () => undefined,
      '#policy': () => ({}),
      '#kernel': () => (name === 'driver' ? kernel().handle : 5n),
      '#config': () => ({ grid: 1, block: 32 }),
      '#args': args,
      '#index': () => 0,
      '#image': () => image,
      'Module.loadFile#path': () => new URL(import.meta.url),
      'Module.kernel#name': () => 'axpy',
      'Module.global#name': () => 'table',
      '#signature': () => ['f32', 'ptr', 'ptr', 'i32'],
      'DeviceBuffer.from#options': () => ({}),
      'PinnedBuffer.from#options': () => ({}),
      'Device.from#device': () => 0,
      '#properties': () => ({ deviceCount: 2, byteLength: 2 ** 21 }),
      '#deviceCount': () => 2,
      '#mode': () => 'legacy',
      'Context.setLimit#value': () => 1024,
      'Device.setLimit#value': () => 1024,
      'defineStruct#name': () => 'point',
      '#fields': () => ({ x: 'f32' }),
      '#data': () => new base.FabricHandle(new Uint8Array(64), { content: 'memory', byteLength: 8 } as never).toJSON(),
      '#bytes': () => new Uint8Array(64),
      '#facts': () => ({ content: 'memory', byteLength: 8 }),
      '#size': () => 4,
      'CudaVersion.from#value': () => 13000,
      'new CudaVersion#value': () => 13000,
      '#major': () => 13,
      '#minor': () => 0,
      '#patch': () => 0,
      '#text': () => '13.0',
      '#other': () => base.CudaVersion.from(13000),
      '#descriptor': () => 10_000,
      '#type': () => 'win32',
      'new WindowsHandle#value': () => 5n,
    },
    strangers: {
      'a disposed buffer': () => second,
      'a disposed stream': () => gone,
      'a stream of another device': () => elsewhere,
      'a buffer of the other package': () =>
        name === 'driver'
          ? runtime.DeviceBuffer.allocate('f32', 4)
          : driver.DeviceBuffer.allocate(driver.Device.get(0), 'f32', 4),
      'a stream of the other package': () => others.Device.get(0).createStream(),
      'an event of the other package': () => others.Device.get(0).createEvent(),
      'a device of the other package': () => others.Device.get(0),
    },
  }
}

async function ncclWorld(): Promise<World> {
  const nccl = await import('@shoal/nccl')
  const { Device, DeviceBuffer } = await import('@shoal/driver')
  const { Device: RuntimeDevice } = await import('@shoal/runtime')
  const device = Device.get(0)
  const [communicator] = (await nccl.Communicator.initAll([0])) as [import('@shoal/nccl').Communicator]
  const stream = device.createStream()
  const buffer = DeviceBuffer.allocate(device, 'f32', 64)
  const memory = (): unknown => nccl.NcclMemory.allocate(0, 2 ** 21)
  const windowMemory = await nccl.NcclMemory.allocate(0, 2 ** 21)
  const registration = await communicator.register(buffer)
  const team = communicator.team('world')
  const sum = await communicator.createPreMulSum(2, { dtype: 'f32' })
  const window = await communicator.registerWindow(windowMemory)
  const prepared = communicator.prepareAllReduce(buffer, buffer, { stream })
  const deviceCommunicator = await communicator.createDeviceCommunicator({})
  const second = DeviceBuffer.allocate(device, 'f32', 64)
  second.dispose()
  const gone = device.createStream()
  gone.dispose()
  const world: World = {
    module: nccl,
    living: {
      Communicator: async (method) => {
        if (!/^(?:destroy|finalize|abort|revoke|suspend|dispose)$/.test(method)) return communicator
        return (await nccl.Communicator.initAll([0]))[0]
      },
      CommunicatorOperations: () => communicator,
      UniqueId: () => nccl.UniqueId.create(),
      DeviceCommunicator: () => deviceCommunicator,
      Team: () => team,
      NcclMemory: memory,
      Registration: () => registration,
      Window: () => window,
      PreMulSum: () => sum,
      NcclParameter: () => undefined,
    },
    values: {
      ...general,
      '#device': () => 0,
      '#devices': () => [0],
      '#id': () => nccl.UniqueId.create(),
      'Communicator.grow#id': () => undefined,
      '#rank': () => 0,
      '#worldSize': () => 1,
      '#stream': () => stream,
      '#send': () => buffer,
      '#recv': () => DeviceBuffer.allocate(device, 'f32', 64),
      '#memory': () => buffer,
      'Communicator.registerWindow#memory': () => windowMemory,
      '#source': () => windowMemory,
      '#window': () => window,
      '#peer': () => 0,
      '#root': () => 0,
      '#color': () => 0,
      '#collectives': () => [prepared],
      '#exclude': () => [],
      '#scalar': () => 2,
      'Communicator.createPreMulSum#dtype': () => 'f32',
      '#signals': () => ({ peer: 0 }),
      '#name': () => 'world',
      '#maxElements': () => 4,
      '#maxElementBytes': () => 4,
      '#resource': () => ({ type: 'lsaBarrier', count: 1 }),
      '#size': () => 2 ** 21,
      'Team.inner#size': () => 1,
      'Team.outer#size': () => 1,
      '#lsaRank': () => 0,
      '#key': () => 'NCCL_DEBUG',
      '#feature': () => 'nccl-shrink',
      '#type': () => 'i64',
      '#other': () => nccl.UniqueId.create(),
      '#bytes': () => new Uint8Array(128),
      '#text': () => nccl.UniqueId.create().toString(),
      'CommunicatorOperations.createPreMulSum#dtype': () => 'f32',
    },
    strangers: {
      'a disposed buffer': () => second,
      'a disposed stream': () => gone,
      'a stream of another device': () => Device.get(1).createStream(),
      'a buffer of another device': () => DeviceBuffer.allocate(Device.get(1), 'f32', 64),
      'a stream of the other package': () => RuntimeDevice.get(0).createStream(),
      'a device of the other package': () => RuntimeDevice.get(0),
    },
    end: () => communicator.abort(),
  }
  return world
}

async function nvshmemWorld(): Promise<World> {
  const nvshmem = await import('@shoal/nvshmem')
  const { Device, DeviceBuffer } = await import('@shoal/driver')
  const { Device: RuntimeDevice } = await import('@shoal/runtime')
  const device = Device.get(0)
  const session = await nvshmem.Session.init({ device: 0, rank: 0, worldSize: 1, id: nvshmem.UniqueId.create() })
  const stream = device.createStream()
  const floats = await session.allocate('f32', 64)
  const longs = await session.allocate('u64', 64)
  const others = await session.allocate('f32', 64)
  const buffer = DeviceBuffer.allocate(device, 'f32', 64)
  const second = DeviceBuffer.allocate(device, 'f32', 64)
  second.dispose()
  const gone = device.createStream()
  gone.dispose()
  // Every atomic operation has 64-bit integers.
  const atomics = Object.fromEntries(
    Object.getOwnPropertyNames(nvshmem.AtomicOperations.prototype).map((name) => [
      `AtomicOperations.${name}#target`,
      () => longs,
    ]),
  )
  const goneBuffer = await session.allocate('f32', 64)
  await goneBuffer.dispose()
  return {
    module: nvshmem,
    living: {
      Session: () => session,
      SymmetricBuffer: (method) => (method === 'dispose' ? session.allocate('f32', 64) : floats),
      AtomicOperations: () => session.atomics,
      Signals: () => session.signals,
      DeviceCode: () => session.deviceCode,
      Team: (method) => (method === 'dispose' ? session.world.splitStrided({ start: 0, size: 1 }) : session.world),
      UniqueId: () => nvshmem.UniqueId.create(),
      PeerMemory: () => undefined,
      Registration: () => undefined,
    },
    values: {
      ...general,
      '#device': () => 0,
      '#id': () => nvshmem.UniqueId.create(),
      'Session.createTeam#id': () => 7n,
      '#other': () => nvshmem.UniqueId.create(),
      '#rank': () => 0,
      '#worldSize': () => 1,
      '#stream': () => stream,
      '#pe': () => 0,
      '#target': () => floats,
      ...atomics,
      '#team': () => session.world,
      '#peCount': () => 1,
      'Session.get#target': () => new Float32Array(64),
      'Session.getSync#target': () => new Float32Array(64),
      'Session.getNonBlocking#target': () => buffer,
      'Session.getOnStream#target': () => buffer,
      'Session.getNonBlockingOnStream#target': () => buffer,
      'Session.getStrided#target': () => new Float32Array(64),
      'Session.getStridedSync#target': () => new Float32Array(64),
      'Session.getStridedOnStream#target': () => buffer,
      '#source': () => others,
      'Session.put#source': () => new Float32Array(64),
      'Session.putSync#source': () => new Float32Array(64),
      'Session.putNonBlocking#source': () => buffer,
      'Session.putOnStream#source': () => buffer,
      'Session.putStrided#source': () => new Float32Array(64),
      'Session.putStridedSync#source': () => new Float32Array(64),
      'Session.putStridedOnStream#source': () => buffer,
      'Session.putNonBlockingOnStream#source': () => buffer,
      'Session.putSignalOnStream#source': () => buffer,
      'Session.putSignalNonBlockingOnStream#source': () => buffer,
      'SymmetricBuffer.copyFrom#source': () => new Float32Array(64),
      'SymmetricBuffer.copyFromSync#source': () => new Float32Array(64),
      'SymmetricBuffer.copyTo#target': () => new Float32Array(64),
      'SymmetricBuffer.copyToSync#target': () => new Float32Array(64),
      '#memory': () => buffer,
      '#count': () => 4,
      '#parameters': () => [],
      'Session.init#options': () => ({ device: 0, rank: 0, worldSize: 1, id: nvshmem.UniqueId.create() }),
      '#value': () => 1,
      '#expected': () => 1,
      '#desired': () => 1,
      '#signal': () => undefined,
      'Signals.fetch#signal': () => longs,
      'Signals.fetchSync#signal': () => longs,
      'Signals.signalOnStream#signal': () => longs,
      'Signals.waitForSignalOnStream#signal': () => longs,
      'Session.putSignalOnStream#signal': () => longs,
      'Session.putSignalNonBlockingOnStream#signal': () => longs,
      '#variables': () => longs,
      '#values': () => DeviceBuffer.from(device, new BigUint64Array(64)),
      'Signals.waitUntilOnStream#value': () => 0n,
      'Signals.waitUntilAllOnStream#value': () => 0n,
      'Signals.waitForSignalOnStream#value': () => 0n,
      '#comparison': () => '>=',
      '#into': () => session.world,
      '#start': () => 0,
      '#size': () => 1,
      '#xRange': () => 1,
      '#op': () => 'sum',
      'Signals.signalOnStream#op': () => 'set',
      'Session.putSignalOnStream#op': () => 'set',
      'Session.putSignalNonBlockingOnStream#op': () => 'set',
      '#root': () => 0,
      '#module': () => 5n,
      '#library': () => 5n,
      '#kernel': () => 5n,
      '#threads': () => 32,
      '#bytes': () => new Uint8Array(128),
      '#text': () => nvshmem.UniqueId.create().toString(),
      '#uniqueId': () => 0n,
      '#members': () => [0],
    },
    strangers: {
      'a disposed buffer': () => second,
      'a disposed symmetric buffer': () => goneBuffer,
      'a disposed stream': () => gone,
      'a stream of another device': () => Device.get(1).createStream(),
      'a buffer of another device': () => DeviceBuffer.allocate(Device.get(1), 'f32', 64),
      'a stream of the other package': () => RuntimeDevice.get(0).createStream(),
      'a device of the other package': () => RuntimeDevice.get(0),
    },
    end: () => session.dispose(),
  }
}

async function launchWorld(): Promise<World> {
  const launch = await import('@shoal/launch')
  const { formatAddress, RendezvousServer } = await import('@shoal/launch/server')
  const secret = randomUUID()
  /** One of two ranks, the other of which never answers. */
  const connected = async (): Promise<import('@shoal/launch').Job> => {
    const server = await RendezvousServer.listen({ worldSize: 2, secret: Buffer.from(secret) })
    const address = formatAddress(server.address)
    const [job] = await Promise.all(
      ['0', '1'].map((RANK) =>
        launch.bootstrap({ environment: { SHOAL_RENDEZVOUS: address, SHOAL_SECRET: secret, RANK, WORLD_SIZE: '2' } }),
      ),
    )
    return job as import('@shoal/launch').Job
  }
  return {
    module: launch,
    living: { Job: () => launch.bootstrap({ environment: {} }), ConnectedJob: connected },
    values: {
      ...general,
      '#name': () => 'a name',
      '#key': () => 'a key',
      '#bytes': () => new Uint8Array(4),
      '#make': () => () => new Uint8Array(4),
    },
    strangers: {},
    // Ranks that were dropped are not waited for.
    end: () => setTimeout(() => process.exit(0), 100),
  }
}

async function ffiWorld(): Promise<World> {
  const ffi = await import('@shoal/ffi')
  const libc = ffi.defineLibrary({
    name: 'junk',
    title: 'libc',
    fileNames: ['libc.so.6'],
    environment: 'SHOAL_JUNK_LIBRARY',
  } as never)
  const memory = (): import('@shoal/ffi').NativeMemory => ffi.NativeMemory.allocate(64)
  return {
    module: ffi,
    living: {
      NativeLibrary: () => libc,
      NativeMemory: memory,
      Lane: () => ffi.createLane(),
      DescriptorServer: () => ffi.DescriptorServer.listen(join(tmpdir(), `shoal-${randomUUID()}`)),
      DescriptorSocket: () => ffi.DescriptorSocket.pair()[0],
    },
    values: {
      ...general,
      ...sharing(ffi),
      '#context': () => 0n,
      '#previous': () => undefined,
      '#descriptor': () => 10_000,
      '#view': () => new Uint8Array(8),
      '#address': () => memory().address,
      'NativeMemory.allocate#byteLength': () => 64,
      'readMemory#byteLength': () => 8,
      'hostView#byteLength': () => 8,
      '#symbol': () => 'getpid',
      'NativeLibrary.rawSymbol#name': () => 'getpid',
      '#since': () => 0,
      '#layout': () => 0,
      'NativeLibrary.bindBig#result': () => 'u64',
      'NativeLibrary.bindStruct#byteLength': () => 8,
      'NativeLibrary.bindForeign#prototype': () => 'int getpid()',
      'NativeLibrary.setPath#path': () => '/lib/libc.so.6',
      '#call': () => () => undefined,
      'onAbort#signal': () => new AbortController().signal,
      '#lane': () => ffi.createLane(),
      '#record': () => () => undefined,
      'defineStructCodec#layout': () => ({
        name: 's',
        size: 8,
        align: 4,
        fields: [{ name: 'x', offset: 0, type: 'i32' }],
      }),
      'offThread#options': () => ({ results: 'value' }),
      '#results': () => 'value',
      '#query': () => ({ context: 0n, event: 0n, query: 0n, notReady: 600 }),
      '#getCurrent': () => 0n,
      '#setCurrent': () => 0n,
    },
    strangers: {},
  }
}

async function typesWorld(): Promise<World> {
  const types = await import('@shoal/types')
  const { Device, DeviceBuffer } = await import('@shoal/driver')
  const device = Device.get(0)
  const versions: Makers = {
    '#value': () => 13000,
    '#major': () => 13,
    '#minor': () => 0,
    '#patch': () => 0,
    '#other': () => types.CudaVersion.from(13000),
  }
  return {
    module: types,
    living: {
      CudaVersion: () => types.CudaVersion.from(13000),
      NcclVersion: () => types.NcclVersion.from(22700),
      NvshmemVersion: () => types.NvshmemVersion.from(30400),
      LibraryVersion: () => undefined,
    },
    values: {
      ...general,
      ...versions,
      'NcclVersion.from#value': () => 22700,
      'NcclVersion.of#major': () => 2,
      'NcclVersion.of#minor': () => 27,
      'NvshmemVersion.from#value': () => 30400,
      'NvshmemVersion.of#major': () => 3,
      'NvshmemVersion.of#minor': () => 4,
      'NcclVersion.compare#other': () => types.NcclVersion.from(22700),
      'NvshmemVersion.compare#other': () => types.NvshmemVersion.from(30400),
      'CudaVersion.parse#text': () => '13.0',
      'NcclVersion.parse#text': () => '2.27.0',
      'NvshmemVersion.parse#text': () => '3.4.0',
      '#mode': () => 'legacy',
      '#bits': () => 0,
      'decodeArray#bits': () => new Float32Array(4),
      '#values': () => [1, 2],
      '#array': () => new Float32Array(4),
      '#device': () => device,
      '#memory': () => DeviceBuffer.allocate(device, 'f32', 4),
      '#stream': () => device.createStream(),
      '#ipc': () => undefined,
      'defineStruct#name': () => 'point',
      '#fields': () => ({ x: 'f32' }),
      '#element': () => 'f32',
      '#type': () => 'f32',
      '#path': () => 'x',
      '#feature': () => 'virtual-memory',
      '#version': () => types.CudaVersion.from(13000),
      '#attempts': () => [],
    },
    strangers: {},
  }
}

const worlds: { readonly [packageName: string]: () => Promise<World> } = {
  driver: () => cudaWorld('driver'),
  'driver/graph': () => graphWorld('driver', general),
  runtime: () => cudaWorld('runtime'),
  'runtime/graph': () => graphWorld('runtime', general),
  nccl: ncclWorld,
  nvshmem: nvshmemWorld,
  launch: launchWorld,
  ffi: ffiWorld,
  types: typesWorld,
}

export const sweptPackages: readonly string[] = Object.keys(worlds)

export function worldOf(packageName: string): Promise<World> {
  const make = worlds[packageName]
  if (make === undefined)
    throw new RangeError(`runArgumentSweep: packages must be of ${sweptPackages.join(', ')}, not ${packageName}`)
  return make()
}
