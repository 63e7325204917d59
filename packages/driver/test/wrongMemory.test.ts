import { closeSync, openSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const {
  AddressRange,
  DescriptorHandle,
  DescriptorSocket,
  allocationGranularity,
  Device,
  DeviceBuffer,
  GrowableBuffer,
  IpcMemory,
  ipcEventHandle,
  ipcMemoryHandle,
  MemoryPool,
  MulticastObject,
  openIpcEvent,
  PhysicalMemory,
  receiveHandle,
  sendHandle,
} = await import('@shoal/driver')

const device = Device.get(0)
const second = Device.get(1)
const unit = allocationGranularity(device)
/** Hides a wrong type, like a program without types. */
const wrong = (value: unknown): never => value as never

const range = AddressRange.reserve(4 * unit)
const memory = PhysicalMemory.create(device, unit, { handleTypes: 'posix-fd' })
const closed = PhysicalMemory.create(device, unit)
const pool = MemoryPool.create(device)
const buffer = DeviceBuffer.allocate(device, 'u8', 16)
const growable = GrowableBuffer.reserve(device, 'f32', { maximumLength: 100 })
const multicast = MulticastObject.create({ deviceCount: 1, byteLength: unit, handleTypes: 'posix-fd' }).addDevice(
  device,
)
const ipc = ipcMemoryHandle(buffer)
const eventHandle = { type: 'ipc-event' as const, handle: Buffer.alloc(64).toString('base64') }
const exported = memory.export()
const facts = exported.toJSON()
const folder = openSync('.', 'r')
const [socket, otherEnd] = DescriptorSocket.pair()
// Kept here, because a dropped handle closes its descriptor.
const closedHandle = new DescriptorHandle(0x7fff_fffe, facts)
const folderHandle = new DescriptorHandle(folder, facts)
const socketHandle = new DescriptorHandle(socket.descriptor, facts)
const event = device.createEvent()
const ofHost = PhysicalMemory.create('host', unit)

const invalid = 'cuMemExportToShareableHandle failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument\n'
const cases: readonly (readonly [what: string, act: () => unknown, name: string, message: string])[] = [
  [
    'invalid options',
    () => allocationGranularity(device, wrong(null)),
    'TypeError',
    'allocationGranularity: options must be a plain object such as { handleTypes, gpuDirectRdma, compressible }, not null',
  ],
  [
    'a part that begins beyond the memory',
    () => range.map(memory, { memoryOffset: 2 * unit }),
    'RangeError',
    `AddressRange.map: memoryOffset must be within the memory of ${unit} bytes, not ${2 * unit}`,
  ],
  [
    'a part that begins at its end',
    () => range.map(memory, { memoryOffset: unit }),
    'RangeError',
    `AddressRange.map: memoryOffset must be within the memory of ${unit} bytes, not ${unit}`,
  ],
  [
    'the same for a multicast object',
    () => multicast.bindMemorySync(memory, { memoryOffset: 2 * unit }),
    'RangeError',
    `MulticastObject.bindMemorySync: memoryOffset must be within the memory of ${unit} bytes, not ${2 * unit}`,
  ],
  [
    'a kind of handle of another platform',
    () => PhysicalMemory.create(device, unit, { handleTypes: 'win32' }),
    'StatusError',
    'cuMemCreate failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument\nwin32 handles are of Windows',
  ],
  [
    'a kind of handle that the machine has not',
    () => PhysicalMemory.create(device, unit, { handleTypes: ['posix-fd', 'fabric'] }),
    'StatusError',
    'cuMemCreate failed: CUDA_ERROR_NOT_PERMITTED (800): operation is not permitted\n' +
      'fabric handles need devices of an NVLink fabric and the right to use an IMEX channel',
  ],
  [
    'memory that was made for another kind',
    () => memory.export('fabric'),
    'StatusError',
    `${invalid}it was made with handles of kind posix-fd, not fabric`,
  ],
  [
    'memory that was made for none',
    () => closed.export(),
    'StatusError',
    `${invalid}it was made with no handles, not posix-fd`,
  ],
  [
    'a multicast object that was made for another kind',
    () => multicast.export('win32'),
    'StatusError',
    `${invalid}it was made with handles of kind posix-fd, not win32`,
  ],
  [
    'a pool that was made for none',
    () => pool.export(),
    'StatusError',
    'cuMemPoolExportToShareableHandle failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument\n' +
      'it was made with no handles, not posix-fd',
  ],
  [
    'flags without a meaning',
    () => MulticastObject.create({ deviceCount: 1, byteLength: unit, flags: 1 }),
    'StatusError',
    'cuMulticastCreate failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument',
  ],
  [
    'invalid flags',
    () => MulticastObject.create({ deviceCount: 1, byteLength: unit, flags: wrong('0') }),
    'TypeError',
    "MulticastObject.create: flags must be an integer from 0 to 2^53 - 1, not '0'",
  ],
  [
    'an invalid device, for memory',
    () => PhysicalMemory.import(wrong(undefined), exported),
    'TypeError',
    'PhysicalMemory.import: device must be a Device or a Context, not undefined',
  ],
  [
    'the host, for memory that was exported',
    () => PhysicalMemory.import(wrong('host'), exported),
    'TypeError',
    "PhysicalMemory.import: device must be a Device or a Context, not 'host'",
  ],
  [
    'memory of the host with handles',
    () => PhysicalMemory.create('host', unit, { handleTypes: 'posix-fd' }),
    'StatusError',
    'cuMemCreate failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument\n' +
      "memory of 'host' has no handles; name a node: { hostNode: 0 }",
  ],
  [
    'memory of the host for a multicast object',
    () => multicast.bindMemorySync(ofHost),
    'RangeError',
    'MulticastObject.bindMemorySync: memory must lie on a device that was added, not on the host',
  ],
  [
    'memory without handles for a multicast object with them',
    () => multicast.bindMemorySync(closed),
    'StatusError',
    'cuMulticastBindMem failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument\n' +
      'the object was made with handles of kind posix-fd, the memory with no handles',
  ],
  [
    'a device for a multicast object once more',
    () => multicast.addDevice(device),
    'RangeError',
    'MulticastObject.addDevice: device must be another one, not device 0, which was added already',
  ],
  [
    'a pointer to memory that is of no pool',
    () => pool.exportPointer(buffer),
    'StatusError',
    'cuMemPoolExportPointer failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument\n' +
      'the memory must be from this pool, and the pool made with handleTypes',
  ],
  [
    'a legacy handle of mapped memory',
    () => ipcMemoryHandle(growable.resize(1).buffer),
    'StatusError',
    'cuIpcGetMemHandle failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument\n' +
      'only memory from DeviceBuffer.allocate, from or zeros has such a handle, not that of a stream, a pool or a mapping',
  ],
  [
    'a legacy handle of this process',
    () => IpcMemory.open(device, ipc),
    'StatusError',
    'cuIpcOpenMemHandle failed: CUDA_ERROR_INVALID_CONTEXT (201): no usable context\n' +
      'a process cannot open handles of its own',
  ],
  [
    'a legacy handle to where no such element can be',
    () => IpcMemory.open(device, { ...ipc, dtype: 'f32', byteOffset: 3 }),
    'RangeError',
    'IpcMemory.open: handle.byteOffset must be a multiple of 4 for f32, not 3',
  ],
  [
    'an event that other processes cannot open',
    () => ipcEventHandle(event),
    'StatusError',
    'cuIpcGetEventHandle failed: CUDA_ERROR_INVALID_HANDLE (400): handle is not valid\n' +
      'the event was not made with { interprocess: true }',
  ],
  [
    'a descriptor that is closed',
    () => PhysicalMemory.import(device, closedHandle),
    'TypeError',
    `PhysicalMemory.import: handle must have an open descriptor, and ${0x7fff_fffe} is not open`,
  ],
  [
    'a descriptor of a folder',
    () => PhysicalMemory.import(device, folderHandle),
    'TypeError',
    `PhysicalMemory.import: handle must have a descriptor of shared memory, and ${folder} is of a folder`,
  ],
  [
    'a descriptor of a socket',
    () => PhysicalMemory.import(device, socketHandle),
    'TypeError',
    `PhysicalMemory.import: handle must have a descriptor of shared memory, and ${socket.descriptor} is of a socket`,
  ],
  [
    'an invalid device, for an event',
    () => openIpcEvent(wrong(null), eventHandle),
    'TypeError',
    'openIpcEvent: owner must be a Device or a Context, not null',
  ],
  [
    'an invalid device, for legacy handles',
    () => IpcMemory.open(wrong(undefined), ipc),
    'TypeError',
    'IpcMemory.open: owner must be a Device or a Context, not undefined',
  ],
  [
    'an invalid device, for a pool',
    () => MemoryPool.create(wrong(0)),
    'TypeError',
    'MemoryPool.create: owner must be a Device or a Context, not 0',
  ],
  [
    'an invalid device, for the default pool',
    () => MemoryPool.defaultOf(wrong(null)),
    'TypeError',
    'MemoryPool.defaultOf: owner must be a Device or a Context, not null',
  ],
  [
    'an invalid device, for the current pool',
    () => MemoryPool.currentOf(wrong('gpu')),
    'TypeError',
    "MemoryPool.currentOf: owner must be a Device or a Context, not 'gpu'",
  ],
  [
    'a legacy handle that does not name its device',
    () => IpcMemory.open(device, { ...ipc, deviceUuid: wrong(undefined) }),
    'TypeError',
    'IpcMemory.open: handle.deviceUuid must be a string, not undefined',
  ],
  [
    'a threshold below zero',
    () => {
      pool.releaseThreshold = -1
    },
    'RangeError',
    'MemoryPool.releaseThreshold: bytes must be an integer from 0 to 2^53 - 1, not -1',
  ],
  [
    'a growable buffer that can have no elements',
    () => GrowableBuffer.reserve(device, 'f32', { maximumLength: 0 }),
    'RangeError',
    `GrowableBuffer.reserve: maximumLength must be an integer from 1 to ${2 ** 45}, not 0`,
  ],
  [
    'more elements than it can have',
    () => growable.resize(2 ** 30),
    'RangeError',
    `GrowableBuffer.resize: length must be an integer from 0 to ${growable.maximumLength}, not ${2 ** 30}`,
  ],
  [
    'devices that are no list',
    () => GrowableBuffer.reserve(device, 'f32', { maximumLength: 1, sharedWith: wrong(device) }),
    'TypeError',
    'GrowableBuffer.reserve: sharedWith must be a list of devices, not an object of class Device',
  ],
]

afterAll(() => {
  closeSync(folder)
  for (const end of [socket, otherEnd]) end.dispose()
})

test.each(cases)('%s: the error has the rule and the value', (_, act, name, message) => {
  expect(act).toThrow(expect.objectContaining({ name, message }) as Error)
})

test('refused calls leak nothing', () => {
  const before = device.memoryInfo().free
  for (const [, act] of cases) expect(act).toThrow()
  expect(device.memoryInfo().free).toBe(before)
  expect(range.mappedBytes).toBe(0)
})

test('handles with different contents are not interchangeable', () => {
  // @ts-expect-error a memory handle is not a pool handle
  expect(() => MemoryPool.import(device, exported)).toThrow(
    'MemoryPool.import: handle must be one of a pool, not of memory',
  )
  // @ts-expect-error it is not a multicast handle either
  expect(() => MulticastObject.import(exported)).toThrow(
    'MulticastObject.import: handle must be one of a multicast object, not of memory',
  )
  const handle = multicast.export()
  // @ts-expect-error and a pool handle is not a memory handle
  expect(() => PhysicalMemory.import(device, handle)).toThrow(
    'PhysicalMemory.import: handle must be one of memory, not of a multicast object',
  )
  handle.dispose()
  // A descriptor has no bytes, and a fabric handle no descriptor.
  // @ts-expect-error
  expect(exported.bytes).toBeUndefined()
})

test('wrong handles and wrong sockets are refused before any message is sent', async () => {
  await expect(sendHandle(wrong(null), exported)).rejects.toThrow(
    'sendHandle: socket must be a DescriptorSocket, not null',
  )
  await expect(receiveHandle(wrong(5), 'memory')).rejects.toThrow(
    'receiveHandle: socket must be a DescriptorSocket, not 5',
  )
  await expect(receiveHandle(socket, wrong('memry'))).rejects.toThrow(
    "receiveHandle: content must be 'memory', 'pool' or 'multicast', not 'memry'",
  )
  await expect(sendHandle(socket, closedHandle)).rejects.toThrow(
    `sendHandle: handle must have an open descriptor, and ${0x7fff_fffe} is not open`,
  )
  await expect(receiveHandle(otherEnd, 'memory', { timeout: 10 })).rejects.toThrow('did not end within 10 ms')
})

test('memory whose handle does not state its location is queried', () => {
  const node = PhysicalMemory.create({ hostNode: 0 }, unit, { handleTypes: 'posix-fd' })
  const handle = node.export()
  expect(handle.toJSON()).not.toHaveProperty('deviceUuid')
  const other = PhysicalMemory.create(second, unit, { handleTypes: 'posix-fd' })
  const otherHandle = other.export()
  const descriptor = openSync(`/proc/self/fd/${otherHandle.descriptor}`, 'r+')
  const unsaid = new DescriptorHandle(descriptor, { content: 'memory', byteLength: unit })
  const [host, elsewhere] = [PhysicalMemory.import(device, handle), PhysicalMemory.import(device, unsaid)]
  const fresh = MulticastObject.create({ deviceCount: 1, byteLength: unit }).addDevice(device)
  expect(() => fresh.bindMemorySync(host)).toThrow('memory must lie on a device that was added, not on the host')
  expect(() => fresh.bindMemorySync(elsewhere)).toThrow('memory must lie on a device that was added, not on device 1')
  for (const resource of [fresh, host, elsewhere, node, other, handle, otherHandle, unsaid]) resource.dispose()
})

test('a multicast object reports the handle types it was created with', () => {
  expect(multicast.handleTypes).toEqual(['posix-fd'])
  const handle = multicast.export()
  const imported = MulticastObject.import(handle)
  expect(imported.handleTypes).toBeUndefined()
  imported.dispose()
  handle.dispose()
})
