import { image } from './cuda.js'
import { general, type Subject } from './subject.js'

/** Returns the subject of the libraries and the linker of `driver`, or of the libraries of `runtime`. */
export async function librarySubject(name: 'driver' | 'runtime'): Promise<Subject> {
  const driver = await import('@shoal/driver')
  const runtime = await import('@shoal/runtime')
  const linking = await import('@shoal/driver/library')
  const base = name === 'driver' ? linking : await import('@shoal/runtime/library')
  const device = (name === 'driver' ? driver : runtime).Device.get(0)
  const kernel = (): import('@shoal/driver').Kernel<['f32', 'ptr', 'ptr', 'i32']> =>
    linking.Library.loadSync(device, image).kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
  const memory = (): import('@shoal/driver').DeviceBuffer<'f32'> => driver.DeviceBuffer.allocate(device, 'f32', 4)
  return {
    module: base,
    instances: {
      Library: () => linking.Library.loadSync(device, image),
      Linker: () => linking.Linker.create(device),
      Kernel: kernel,
      PreparedLaunch: () => kernel().prepare({ grid: 1, block: 32 }, 2, memory(), memory(), 4),
    },
    values: {
      ...general,
      DeviceOrContext: () => device,
      '#owner': () => device,
      '#image': () => image,
      '#path': () => new URL(import.meta.url),
      '#name': () => 'axpy',
      'Library.global#name': () => 'table',
      'Library.managed#name': () => 'table',
      '#signature': () => ['f32', 'ptr', 'ptr', 'i32'],
      '#attribute': () => 'MAX_DYNAMIC_SHARED_SIZE_BYTES',
      '#value': () => 1024,
      '#preference': () => 'shared',
      '#config': () => ({ grid: 1, block: 32 }),
      '#attributes': () => ({ cooperative: true }),
      '#args': () => [2, memory(), memory(), 4],
      '#index': () => 0,
      'PreparedLaunch.set#value': () => 1,
      'Linker.add#options': () => ({ kind: 'ptx' }),
      'Linker.addFile#path': () => new URL('../../../../kernels/ptx/apps.ptx', import.meta.url),
      'Linker.addFile#options': () => ({ kind: 'ptx' }),
    },
    foreignObjects: {
      'a context that is gone': () => {
        const other = driver.Device.get(1)
        const { primaryContext } = other
        other.dispose()
        return primaryContext
      },
    },
  }
}
