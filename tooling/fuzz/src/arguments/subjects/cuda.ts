import { sharing, socketPath } from './sharing.js'
import { general, type Subject } from './subject.js'

/** PTX of a module with the kernel and the variable that the sweep uses. */
export const image = `.version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .b8 table[64];
.visible .entry axpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n) { ret; }`

/**
 * Returns the subject for objects that `driver` and `runtime` share. They are created on a device of the named package.
 */
export async function cudaSubject(name: 'driver' | 'runtime'): Promise<Subject> {
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
  const pool = (): import('@shoal/driver').MemoryPool => device.createMemoryPool({ handleTypes: 'posix-fd' } as never)
  let keeping = device.createCachingPool()
  // A buffer and the pool that receives it must match, so both use this pool.
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
    instances: {
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
      DescriptorServer: () => ffi.DescriptorServer.listen(socketPath()),
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
      'Kernel.setAttribute#attribute': () => 'MAX_DYNAMIC_SHARED_SIZE_BYTES',
      'Kernel.setCacheConfig#preference': () => 'shared',
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
      'Context.setFlags#flags': () => ({}),
      'Device.setPrimaryContextFlags#flags': () => ({}),
      'Stream.setAttributes#attributes': () => ({ priority: 0 }),
      'Stream.copyAttributes#from': stream,
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
    foreignObjects: {
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
