// A process that maps, reads and writes the memory it receives, for the cases in this folder and in multicast.ts.
import { join } from 'node:path'
import {
  AddressRange,
  allocationGranularity,
  DescriptorSocket,
  Device,
  DeviceBuffer,
  type Event,
  FabricHandle,
  type IpcEventHandle,
  IpcMemory,
  type IpcMemoryHandle,
  MemoryPool,
  Module,
  MulticastObject,
  openIpcEvent,
  PhysicalMemory,
  type PoolPointer,
  receiveHandle,
  type ShareableHandle,
  sendHandle,
} from '@shoal/driver'
import { answerCommands } from '../../../support/child.js'
import { queueDelay } from '../../../support/delay.js'
import { openDescriptors } from '../../../support/leftovers.js'

/** The descriptor that the parent passed on. */
const inherited = 4

const owned: Disposable[] = []
let socket: DescriptorSocket | undefined
let bytes: DeviceBuffer<'u8'> | undefined
let event: Event | undefined
let pool: MemoryPool | undefined
let multicast: MulticastObject | undefined

function own<T extends Disposable>(object: T): T {
  owned.push(object)
  return object
}

function line(): DescriptorSocket {
  socket ??= own(DescriptorSocket.adopt(inherited))
  return socket
}

function memory(): DeviceBuffer<'u8'> {
  if (bytes === undefined) throw new Error('there is no memory yet')
  return bytes
}

function map(physical: PhysicalMemory, device: Device, access: 'read' | 'readWrite' = 'readWrite'): number {
  const range = own(AddressRange.reserve(physical.byteLength))
  bytes = DeviceBuffer.view(device, own(range.map(physical, { access: [{ place: device, access }] })), 'u8')
  return bytes.length
}

async function takeMemory(handle: ShareableHandle<'memory'>, ordinal: number, access?: 'read'): Promise<number> {
  const device = Device.get(ordinal)
  try {
    return map(own(PhysicalMemory.import(device, handle)), device, access)
  } finally {
    handle.dispose()
  }
}

interface Taking {
  readonly device?: number
  readonly access?: 'read'
}

answerCommands({
  receiveMemory: async ({ device = 0, access }: Taking) =>
    takeMemory(await receiveHandle(line(), 'memory'), device, access),

  importFabric: (json: Parameters<typeof FabricHandle.fromJSON<'memory'>>[0]) =>
    takeMemory(FabricHandle.fromJSON(json), 0),

  async sendMemory({ granules, value }: { readonly granules: number; readonly value: number }) {
    const device = Device.get(0)
    const byteLength = allocationGranularity(device) * granules
    const physical = own(PhysicalMemory.create(device, byteLength, { handleTypes: 'posix-fd' }))
    map(physical, device)
    memory().fillSync(value)
    const handle = physical.export()
    await sendHandle(line(), handle)
    handle.dispose()
    return byteLength
  },

  async receivePool({ device = 0 }: Taking) {
    const handle = await receiveHandle(line(), 'pool')
    try {
      pool = own(MemoryPool.import(Device.get(device), handle))
    } finally {
      handle.dispose()
    }
  },

  openPointer(pointer: PoolPointer<'u8'>) {
    if (pool === undefined) throw new Error('there is no pool yet')
    const stream = own(pool.device.createStream())
    bytes = own(pool.importPointer(stream, pointer))
    return bytes.length
  },

  allocateFromPool() {
    if (pool === undefined) throw new Error('there is no pool yet')
    const stream = own(pool.device.createStream())
    own(pool.allocate(stream, 'u8', 100))
  },

  openIpc(handle: IpcMemoryHandle<'u8'>) {
    const device = Device.all().find(({ uuid }) => uuid === handle.deviceUuid) ?? Device.get(0)
    bytes = own(IpcMemory.open(device, handle)).buffer
    return bytes.length
  },

  openEvent(handle: IpcEventHandle) {
    event = own(openIpcEvent(Device.get(0), handle))
    return event.query()
  },

  async awaitEvent() {
    await event?.synchronize()
  },

  async recordLater(milliseconds: number) {
    const stream = own(Device.get(0).createStream({ nonBlocking: true }))
    await queueDelay(stream, milliseconds)
    memory().fill(0x5a, { stream })
    if (event !== undefined) stream.record(event)
  },

  async receiveMulticast({ device = 0 }: Taking) {
    const handle = await receiveHandle(line(), 'multicast')
    multicast = own(MulticastObject.import(handle))
    handle.dispose()
    multicast.addDevice(Device.get(device))
  },

  async bindMulticast({ device = 0 }: Taking) {
    if (multicast === undefined) throw new Error('there is no multicast object yet')
    const on = Device.get(device)
    const physical = own(PhysicalMemory.create(on, multicast.byteLength, { handleTypes: 'posix-fd' }))
    map(physical, on)
    memory().fillSync(0)
    await multicast.bindMemory(physical)
  },

  read: () => memory().toArraySync(),
  readPart: ({ start, end }: { readonly start: number; readonly end: number }) =>
    memory().slice(start, end).toArraySync(),
  write: ({ start, data }: { readonly start: number; readonly data: Uint8Array }) => {
    memory()
      .slice(start, start + data.length)
      .copyFromSync(data)
  },
  fill: (value: number) => {
    memory().fillSync(value)
  },

  /** Queues more writes than can complete soon, and does not wait. */
  keepWriting(value: number) {
    const stream = own(Device.get(memory().device.ordinal).createStream())
    for (let round = 0; round < 200; round += 1) memory().fill(value, { stream })
  },

  /** Runs a kernel that writes to the memory. A forbidden write loses the context. */
  async runAxpy(folder: string) {
    const device = Device.get(0)
    const axpy = (await Module.loadFile(device, join(folder, 'axpy.ptx'))).kernel('axpy', ['f32', 'ptr', 'ptr', 'i32'])
    const x = DeviceBuffer.from(device, new Float32Array(1000).fill(1))
    const stream = device.createStream()
    axpy.launch({ grid: 4, block: 256, stream }, 2, x, memory().reinterpret('f32').slice(0, 1000), 1000)
    await stream.synchronize()
  },

  /** Uses an address that is no longer mapped, through a buffer that no check can detect. */
  fillUnmapped() {
    const device = Device.get(0)
    const byteLength = allocationGranularity(device)
    const range = own(AddressRange.reserve(byteLength))
    const physical = own(PhysicalMemory.create(device, byteLength))
    const mapped = range.map(physical)
    const unchecked = DeviceBuffer.fromAddress(device, mapped.address, 'u8', byteLength)
    unchecked.fillSync(1)
    mapped.disposeSync()
    unchecked.fillSync(2)
  },

  /** Succeeds if the context still works. */
  probe: () => DeviceBuffer.zeros(Device.get(0), 'u8', 10).toArraySync().length,

  disposeAll() {
    for (const object of owned.splice(0).reverse()) if (object !== socket) object[Symbol.dispose]()
    bytes = undefined
    event = undefined
    pool = undefined
    multicast = undefined
    return { descriptors: openDescriptors(), free: Device.get(0).memoryInfo().free }
  },
})
