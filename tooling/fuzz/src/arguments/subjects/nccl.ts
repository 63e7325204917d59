import { general, type Subject } from './subject.js'

export async function ncclSubject(): Promise<Subject> {
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
  const subject: Subject = {
    module: nccl,
    instances: {
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
    foreignObjects: {
      'a disposed buffer': () => second,
      'a disposed stream': () => gone,
      'a stream of another device': () => Device.get(1).createStream(),
      'a buffer of another device': () => DeviceBuffer.allocate(Device.get(1), 'f32', 64),
      'a stream of the other package': () => RuntimeDevice.get(0).createStream(),
      'a device of the other package': () => RuntimeDevice.get(0),
    },
    end: () => communicator.abort(),
  }
  return subject
}
