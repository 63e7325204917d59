import { general, type Subject } from './subject.js'

export async function nvshmemSubject(): Promise<Subject> {
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
  // 64-bit integers work with every atomic operation.
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
    instances: {
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
    foreignObjects: {
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
