import { ftruncateSync, openSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import { sharing } from './sharing.js'
import { general, type Makers, type Subject } from './subject.js'

type PackageName = 'driver' | 'runtime'
type Driver = typeof import('@shoal/driver')

async function driverAndDevice() {
  const driver: Driver = await import('@shoal/driver')
  return { driver, device: driver.Device.get(0), peer: driver.Device.get(1) }
}

/** Returns the values that every entry point needs. */
function common({ device, peer }: Awaited<ReturnType<typeof driverAndDevice>>): {
  readonly values: Makers
  readonly foreignObjects: Makers
} {
  const gone = device.createStream()
  gone.dispose()
  return {
    values: {
      ...general,
      DeviceOrContext: () => device,
      '#owner': () => device,
      '#stream': () => device.createStream({ nonBlocking: true }),
      '#event': () => device.createEvent(),
    },
    foreignObjects: {
      'a disposed stream': () => gone,
      'a stream of another device': () => peer.createStream(),
      'an event of another device': () => peer.createEvent(),
    },
  }
}

let files = 0

/** Returns the descriptor of a memory file, such as another library would export. */
export function memoryDescriptor(byteLength: number): number {
  files += 1
  const path = join(tmpdir(), `shoal-fuzz-${process.pid}-${files}`)
  const descriptor = openSync(path, 'w+')
  unlinkSync(path)
  ftruncateSync(descriptor, byteLength)
  return descriptor
}

/** Returns the subject of two- and three-dimensional memory and batches. */
export async function memorySubject(name: PackageName): Promise<Subject> {
  const parts = await driverAndDevice()
  const { driver, device } = parts
  const module = name === 'driver' ? await import('@shoal/driver/memory') : await import('@shoal/runtime/memory')
  const { PitchedBuffer } = await import('@shoal/driver/memory')
  const extent = { width: 4, height: 3 }
  const pitchedCopy = (): unknown => {
    const [target, source] = [0, 1].map(() => PitchedBuffer.allocate(device, 'f32', extent))
    return { target, source }
  }
  const managed = (): unknown => driver.ManagedBuffer.allocate(device, 'f32', 4)
  const { values, foreignObjects } = common(parts)
  return {
    module,
    instances: { PitchedBuffer: () => PitchedBuffer.allocate(device, 'f32', extent) },
    values: {
      ...values,
      '#extent': () => extent,
      '#width': () => 4,
      '#height': () => 3,
      '#array': () => new Float32Array(12),
      'PitchedBuffer.from#options': () => extent,
      '#copies': () => [0, 1].map(() => pitchedCopy()),
      '#source': () => new Float32Array(12),
      '#target': () => new Float32Array(12),
      'PitchedBuffer.copyInto#target': () => driver.DeviceBuffer.allocate(device, 'f32', 12),
      '#value': () => 1,
      '#y': () => 1,
      '#z': () => 0,
      '#region': () => ({ x: 1 }),
      '#prefetches': () => [{ memory: managed(), place: 0 }],
      '#memories': () => [managed()],
      'prefetchBatch#options': () => ({ stream: device.createStream({ nonBlocking: true }) }),
      'discardBatch#options': () => ({ stream: device.createStream({ nonBlocking: true }) }),
    },
    foreignObjects,
  }
}

/** Returns the subject of contexts and parts of a device. */
export async function contextSubject(name: PackageName): Promise<Subject> {
  const parts = await driverAndDevice()
  const { device, peer } = parts
  const contexts = await import('@shoal/driver/context')
  const module = name === 'driver' ? contexts : await import('@shoal/runtime/context')
  const resource = (): unknown => contexts.DeviceResource.of(device)
  const { values, foreignObjects } = common(parts)
  return {
    module,
    instances: {
      CreatedContext: () => contexts.CreatedContext.create(device),
      DeviceResource: resource,
      GreenContext: () => contexts.GreenContext.create(contexts.DeviceResource.of(device)),
    },
    values: {
      ...values,
      '#context': () => device,
      '#device': () => device,
      '#multiprocessors': () => 2,
      '#resources': resource,
      'CreatedContext.run#fn': () => () => undefined,
      'CreatedContext.setLimit#value': () => 1024,
      'CreatedContext.setFlags#flags': () => ({}),
      'CreatedContext.enablePeerAccess#peer': () => peer,
      'CreatedContext.disablePeerAccess#peer': () => peer,
    },
    foreignObjects: { ...foreignObjects, 'a part of another device': () => contexts.DeviceResource.of(peer) },
  }
}

/** Returns the subject of memory and semaphores of other libraries. */
export async function externalSubject(name: PackageName): Promise<Subject> {
  const parts = await driverAndDevice()
  const { driver, device, peer } = parts
  const externals = await import('@shoal/driver/external')
  const module = name === 'driver' ? externals : await import('@shoal/runtime/external')
  const memory = () => ({ type: 'opaque-fd', handle: memoryDescriptor(4096), byteLength: 4096 }) as const
  const semaphore = (owner = device) =>
    externals.ExternalSemaphore.import(owner, { type: 'timeline-fd', handle: memoryDescriptor(8) })
  const { values, foreignObjects } = common(parts)
  return {
    module,
    instances: {
      ExternalMemory: () => externals.ExternalMemory.import(device, memory()),
      ExternalSemaphore: () => semaphore(),
    },
    values: {
      ...values,
      'ExternalMemory.import#description': memory,
      'ExternalSemaphore.import#description': () => ({ type: 'timeline-fd', handle: memoryDescriptor(8) }),
      'DmaBuf.export#memory': () => driver.DeviceBuffer.allocate(device, 'u8', 4096),
      '#operations': () => [{ semaphore: semaphore(), value: 0 }],
    },
    foreignObjects: { ...foreignObjects, 'a semaphore of another device': () => semaphore(peer) },
  }
}

/** Returns the subject of DLPack tensors. */
export async function dlpackSubject(name: PackageName): Promise<Subject> {
  const parts = await driverAndDevice()
  const { driver, device } = parts
  const dlpack = await import('@shoal/driver/dlpack')
  const module = name === 'driver' ? dlpack : await import('@shoal/runtime/dlpack')
  const memory = () => driver.DeviceBuffer.zeros(device, 'f32', 4)
  const capsule = () => dlpack.toDLPack(memory())
  const { values, foreignObjects } = common(parts)
  return {
    module,
    instances: { DLPackCapsule: capsule, DLPackTensor: () => dlpack.fromDLPack(capsule()) },
    values: { ...values, '#memory': memory, '#capsule': capsule },
    foreignObjects,
  }
}

/** Returns the subject of memory shared with threads and processes. */
export async function sharingSubject(name: PackageName): Promise<Subject> {
  const parts = await driverAndDevice()
  const { driver, device } = parts
  const ffi = await import('@shoal/ffi')
  const module = name === 'driver' ? await import('@shoal/driver/sharing') : await import('@shoal/runtime/sharing')
  const { values, foreignObjects } = common(parts)
  // No peer answers, so these calls time out at once.
  const soon = () => ({ timeout: 1 })
  return {
    module,
    instances: {},
    values: {
      ...values,
      ...sharing(ffi),
      '#memory': () => driver.DeviceBuffer.zeros(device, 'f32', 4),
      '#channel': () => new MessageChannel().port1,
      '#options': soon,
    },
    foreignObjects,
  }
}
