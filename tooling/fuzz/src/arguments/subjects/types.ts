import { general, type Makers, type Subject } from './subject.js'

export async function typesSubject(): Promise<Subject> {
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
    instances: {
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
    foreignObjects: {},
  }
}
