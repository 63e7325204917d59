import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DescriptorSocket } from '@shoal/ffi'
import { libraries, libraryFolder } from '@shoal/sim'
import ts from 'typescript-api'
import { afterAll, describe, expect, type TestContext, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { tellValues } from '../../setup/test/told.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const {
  AddressRange,
  allocationGranularity,
  Device,
  DeviceBuffer,
  GrowableBuffer,
  ipcEventHandle,
  MemoryPool,
  openIpcEvent,
  PhysicalMemory,
} = await import('@shoal/driver')
const { receiveMemory, sendMemory } = await import('@shoal/driver/sharing')

const packageFolder = fileURLToPath(new URL('../../../python/', import.meta.url))
const links = join(scratchFolder(), 'software-device')
mkdirSync(links)
symlinkSync(join(libraryFolder(), libraries.cuda), join(links, 'libcuda.so.1'))
const env = {
  ...process.env,
  LD_LIBRARY_PATH: links,
  SHOAL_CUDA_LIBRARY: '',
  PYTHONPATH: packageFolder,
  PYTHONDONTWRITEBYTECODE: '1',
}
const device = Device.get(0)
const limit = { timeout: 60_000 }
const version = spawnSync('python3', ['-c', 'import sys; print(sys.version_info >= (3, 9))'], { encoding: 'utf8' })

function needsPython(context: TestContext): void {
  if (version.stdout?.trim() !== 'True') context.skip('no python3 of 3.9 or newer here (socket.recv_fds came with it)')
}

const unit = allocationGranularity(device, { handleTypes: 'posix-fd' })

/** Returns a buffer of bytes that has grown `count` times, by one unit each. */
function grown(count: number) {
  const options = { maximumLength: count * unit, stepBytes: 1, handleTypes: 'posix-fd' } as const
  const buffer = GrowableBuffer.reserve(device, 'u8', options)
  for (let pieces = 1; pieces <= count; pieces += 1) buffer.resize(pieces * unit)
  return buffer
}

const sockets: DescriptorSocket[] = []
afterAll(() => {
  for (const socket of sockets) socket.dispose()
})

/** Runs a Python program with its end of a socket as `peer`. Its output is one JSON value per line. */
function python(program: string): { readonly socket: DescriptorSocket; readonly end: Promise<readonly unknown[]> } {
  const [socket, theirs] = DescriptorSocket.pair()
  sockets.push(socket)
  const prelude = `import json, sys
from shoal_memory import *
peer = DescriptorSocket.adopt(3)
peer.settimeout(60)
def say(value): print(json.dumps(value))
`
  const child = spawn('python3', ['-W', 'error', '-c', prelude + program], {
    env,
    stdio: ['ignore', 'pipe', 'pipe', theirs.descriptor],
  })
  theirs.dispose()
  let [output, errors] = ['', '']
  child.stdout?.on('data', (text) => {
    output += text
  })
  child.stderr?.on('data', (text) => {
    errors += text
  })
  const end = new Promise<readonly unknown[]>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      const said = output.replace(/^shoal: software device in use.*\n/m, '').trim()
      if (code === 0) resolve(said === '' ? [] : said.split('\n').map((line) => JSON.parse(line)))
      else reject(new Error(`python3 ended with ${code}: ${errors}`))
    })
  })
  end.catch(() => undefined)
  return { socket, end }
}

const takesOne = `
with receive(peer) as array:
    interface = array.__cuda_array_interface__
    say([array.way, array.dtype, array.shape, array.strides, interface["typestr"], interface["strides"], array.device])
    data = array.read()
    say(list(data))
    if not array.read_only: array.write(bytes(255 - byte for byte in data))
peer.send(b"done")
`
const inverted = (bytes: Uint8Array): number[] => [...bytes].map((byte) => 255 - byte)

describe('sharing from Node to Python', () => {
  const bytes = Uint8Array.from({ length: 64 }, (_, index) => (index * 7) % 251)

  test('passes device memory by a legacy IPC handle', async (context) => {
    needsPython(context)
    using buffer = DeviceBuffer.from(device, bytes)
    const { socket, end } = python(takesOne)
    await sendMemory(socket, buffer.slice(16, 48).reinterpret('f32'), limit)
    await socket.receive(limit)
    expect(await end).toEqual([['ipc', 'f32', [8], [1], '<f4', null, 0], [...bytes.slice(16, 48)]])
    expect([...buffer.toArraySync()]).toEqual([
      ...bytes.slice(0, 16),
      ...inverted(bytes.slice(16, 48)),
      ...bytes.slice(48),
    ])
  })

  test('passes mapped memory by a descriptor', async (context) => {
    needsPython(context)
    const options = { handleTypes: 'posix-fd' } as const
    using physical = PhysicalMemory.create(Device.get(1), allocationGranularity(Device.get(1), options), options)
    using range = AddressRange.reserve(physical.byteLength)
    using mapped = range.map(physical)
    const view = DeviceBuffer.view(Device.get(1), mapped, 'u8', { byteOffset: 256, length: 64 }).copyFromSync(bytes)
    const { socket, end } = python(takesOne)
    await sendMemory(socket, view, limit)
    await socket.receive(limit)
    expect(await end).toEqual([['posix-fd', 'u8', [64], [1], '|u1', null, 1], [...bytes]])
    expect([...view.toArraySync()]).toEqual(inverted(bytes))
  })

  test.for([3, 64, 65, 130])('passes grown memory in %i pieces, with a descriptor for each', async (count, context) => {
    needsPython(context)
    using buffer = grown(count)
    const places = [0, unit - 1, unit, buffer.length - 1]
    for (const [order, place] of places.entries())
      buffer.buffer
        .slice(place)
        .slice(0, 1)
        .fillSync(order + 1)
    const { socket, end } = python(`
with receive(peer) as array:
    say([array.way, array.shape])
    part = DeviceArray(array.address + ${unit} - 1, 2, "u8", [2], [1], 0, way="own", close=print)
    data = array.read()
    say([list(part.read()), data[0], data[-1]])
    part.write(bytes([7, 8]))
peer.send(b"done")
`)
    await sendMemory(socket, buffer, limit)
    await socket.receive(limit)
    expect(await end).toEqual([
      ['posix-fd', [count * unit]],
      [[2, 3], 1, 4],
    ])
    expect(buffer.buffer.slice(unit - 1, unit + 1).toArraySync()).toEqual(Uint8Array.of(7, 8))
  })

  test('passes pool memory through the pool', async (context) => {
    needsPython(context)
    using pool = MemoryPool.create(device, { handleTypes: 'posix-fd' })
    using stream = device.createStream()
    using buffer = pool.allocate(stream, 'u8', 64).copyFrom(bytes, { stream })
    await stream.synchronize()
    const { socket, end } = python(takesOne)
    await sendMemory(socket, buffer.slice(8), limit)
    await socket.receive(limit)
    expect(await end).toEqual([['pool', 'u8', [56], [1], '|u1', null, 0], [...bytes.slice(8)]])
    expect([...buffer.toArraySync()]).toEqual([...bytes.slice(0, 8), ...inverted(bytes.slice(8))])
  })

  test('passes a strided matrix with byte strides, and keeps read-only memory read-only', async (context) => {
    needsPython(context)
    using buffer = DeviceBuffer.zeros(device, 'f64', 32)
    const layout = { shape: [3, 4], strides: [8, 1], readOnly: true, version: 1, length: undefined }
    const symbol = Symbol.for('cuda.memory')
    const matrix = { [symbol]: { ...((buffer as never)[symbol] as object), ...layout } } as never
    const { socket, end } = python(takesOne)
    await sendMemory(socket, matrix, limit)
    await socket.receive(limit)
    const [facts] = await end
    expect(facts).toEqual(['ipc', 'f64', [3, 4], [8, 1], '<f8', [64, 8], 0])
  })

  test('orders the contents by an event, on the host or on a stream', async (context) => {
    needsPython(context)
    using buffer = DeviceBuffer.zeros(device, 'u8', 4)
    using event = device.createEvent({ interprocess: true, timing: false })
    using stream = device.createStream()
    buffer.fill(9, { stream })
    stream.record(event)
    const { socket, end } = python(`
for stream in (None, 0):
    with receive(peer, stream) as array: say(list(array.read()))
peer.send(b"done")
`)
    await sendMemory(socket, buffer, { ...limit, event })
    await sendMemory(socket, buffer, { ...limit, event })
    await socket.receive(limit)
    expect(await end).toEqual([
      [9, 9, 9, 9],
      [9, 9, 9, 9],
    ])
  })
})

describe('sharing from Python to Node', () => {
  test('passes an array allocated in Python, with its shape and its bytes', async (context) => {
    needsPython(context)
    const { socket, end } = python(`
with allocate((2, 3), "i32") as array:
    array.write(b"".join(number.to_bytes(4, "little") for number in range(6)))
    send(peer, array)
    peer.receive()
    say(list(array.read()))
`)
    {
      using memory = await receiveMemory<'i32'>(socket, limit)
      expect([memory.way, memory.dtype, memory.shape, memory.strides]).toEqual(['ipc', 'i32', [2, 3], [3, 1]])
      expect(memory.buffer.toArraySync()).toEqual(Int32Array.of(0, 1, 2, 3, 4, 5))
      memory.buffer.fillSync(1)
    }
    await socket.send({ bytes: Buffer.from('done') })
    expect(await end).toEqual([Array.from({ length: 24 }, (_, index) => (index % 4 === 0 ? 1 : 0))])
  })

  test('passes an array of another library, with strides, a stream and read-only; and an event', async (context) => {
    needsPython(context)
    const { socket, end } = python(`
class Array:
    def __init__(self, interface): self.__cuda_array_interface__ = interface
with allocate(64, "f32") as memory, Event.create() as event:
    event.record()
    plain = {"version": 3, "shape": (4, 2), "typestr": "<f4", "data": (memory.address, True), "strides": (32, 4), "stream": 1}
    send(peer, Array(plain))
    send(peer, Array({**plain, "strides": None}), event)
    peer.receive()
`)
    using matrix = await receiveMemory(socket, limit)
    expect([matrix.shape, matrix.strides, matrix.byteLength]).toEqual([[4, 2], [8, 1], 104])
    expect(() => matrix.buffer).toThrow('must be contiguous')
    matrix.dispose()
    using whole = await receiveMemory(socket, limit)
    expect([whole.strides, whole.byteLength]).toEqual([[2, 1], 32])
    whole.dispose()
    await socket.send({ bytes: Buffer.from('done') })
    await end
  })

  test.for([2, 64, 67])("passes memory in %i pieces, as in PyTorch's expandable segments", async (count, context) => {
    needsPython(context)
    const { socket, end } = python(`
import ctypes
from ctypes import byref, c_uint64
from shoal_memory._cuda import _Access, driver
from shoal_memory._array import DeviceArray
# CUmemAllocationProp: pinned memory of device 0, with a descriptor.
properties = (ctypes.c_int * 8)(1, 1, 1, 0)
cuda, unit, handle = driver(), ${unit}, c_uint64()
with cuda.on(0):
    start = cuda.reserve(${count} * unit)
    for piece in range(${count}):
        assert cuda._library.cuMemCreate(byref(handle), c_uint64(unit), byref(properties), c_uint64(0)) == 0
        cuda.call("cuMemMap", start + piece * unit, unit, 0, handle, 0)
        access = _Access(1, 0, 3)
        cuda.call("cuMemSetAccess", start + piece * unit, unit, byref(access), 1)
        cuda.call("cuMemRelease", handle)
length = (${count} - 1) * unit + 3
array = DeviceArray(start + 5, length, "u8", [length], [1], 0, way="own", close=print)
array.write(bytes([1]) * (length - 1) + bytes([2]))
send(peer, array)
peer.receive()
say(array.read()[-3:].hex())
`)
    using memory = await receiveMemory<'u8'>(socket, limit)
    expect([memory.way, memory.length]).toEqual(['posix-fd', (count - 1) * unit + 3])
    expect(memory.buffer.slice(-2).toArraySync()).toEqual(Uint8Array.of(1, 2))
    memory.buffer.slice(-2).fillSync(6)
    await socket.send({})
    expect(await end).toEqual(['010606'])
  })

  test('returns received memory', async (context) => {
    needsPython(context)
    using pool = MemoryPool.create(device, { handleTypes: 'posix-fd' })
    const { socket, end } = python(`
try:
    send(peer, 7)
except TypeError as error: say(str(error))
for interface, kind in (
    ({"typestr": "<M8", "shape": (1,), "data": (0, False)}, TypeError),
    ({"typestr": "<f4", "shape": (2,), "data": (4096, False), "strides": (6,)}, ValueError),
    ({"typestr": "<f4", "shape": (2,), "data": (4096, False), "strides": (-4,)}, ValueError),
    ({"typestr": "<f4", "shape": (0,), "data": (0, False)}, ValueError),
    ({"typestr": "<f4", "shape": (2,), "data": (4096, False)}, CudaError),
):
    try:
        send(peer, type("Array", (), {"__cuda_array_interface__": interface})())
        say("it was sent")
    except kind as error: say(str(error))
`)
    expect(await end).toEqual([
      'send: array must have __cuda_array_interface__, not 7',
      "send: array must have a type that Shoal has, not '<M8'",
      'send: strides must be multiples of 4 bytes from 0, not (6,)',
      'send: strides must be multiples of 4 bytes from 0, not (-4,)',
      'send: array must have elements, not shape (0,)',
      expect.stringContaining('cuPointerGetAttribute: CUDA_ERROR_INVALID_VALUE'),
    ])
    expect([pool.disposed, socket.disposed]).toEqual([false, false])
  })
})

test('the program of the guide runs', async (context) => {
  needsPython(context)
  const page = readFileSync(new URL('../../../docs/guides/python.md', import.meta.url), 'utf8')
  const [, program = ''] = /```ts\n(import [\s\S]*?)```/.exec(page) ?? []
  const { outputText } = ts.transpileModule(tellValues(program).text, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  })
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', `${outputText}\nawait exchange()`],
    { cwd, env, encoding: 'utf8' },
  )
  expect(stderr.replaceAll(/^shoal: software device in use.*\n/gm, '')).toBe('')
  expect(stdout.split('\n').sort()).toEqual([
    '',
    'Node: [ 2, 2 ] Uint8Array(4) [ 1, 2, 3, 4 ] Uint8Array(4) [ 4, 3, 2, 1 ]',
    'Python: u8 (4,) 01020304',
  ])
  expect(status).toBe(0)
})

test('events are shared in both directions', async (context) => {
  needsPython(context)
  using event = device.createEvent({ interprocess: true, timing: false })
  device.createStream().record(event)
  const { socket, end } = python(`
data, _ = peer.receive()
with Event.open(json.loads(data)) as event:
    event.synchronize()
    event.wait()
with Event.create() as event:
    event.record()
    peer.send(json.dumps(event.description).encode())
    peer.receive()
try: event.handle
except ValueError as error: say(str(error))
for wrong in (7, {"type": "ipc-memory"}, {"type": "ipc-event", "handle": 7}, {"type": "ipc-event", "handle": "AAAA"}):
    try: Event.open(wrong)
    except (TypeError, ValueError) as error: say(str(error))
`)
  await socket.send({ bytes: Buffer.from(JSON.stringify(ipcEventHandle(event))) })
  const { bytes } = await socket.receive(limit)
  using theirs = openIpcEvent(device, JSON.parse(Buffer.from(bytes).toString()))
  await theirs.synchronize(limit)
  await socket.send({})
  expect(await end).toEqual([
    'Event: it is closed',
    'Event.open: description must be one of an IPC event, not 7',
    "Event.open: description must be one of an IPC event, not {'type': 'ipc-memory'}",
    'Event.open: handle must be base64 text, not 7',
    'Event.open: handle must have 64 bytes, not 3',
  ])
})

test('a consumer reads a DLPack tensor, whose deleter runs at the end', async (context) => {
  needsPython(context)
  const { end } = python(`
import ctypes, gc
from shoal_memory import _dlpack
array = allocate((2, 3), "f16", device=1)
say(array.__dlpack_device__())
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
rename = ctypes.pythonapi.PyCapsule_SetName
rename.argtypes, rename.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
for versioned, name, used in ((None, b"dltensor", b"used_dltensor"), ((1, 0), b"dltensor_versioned", b"used_dltensor_versioned")):
    capsule = array.__dlpack__(max_version=versioned)
    address = pointer(capsule, name)
    kind = _dlpack._Versioned if versioned else _dlpack._Managed
    managed = kind.from_address(address)
    tensor = managed.tensor
    say([tensor.data == array.address, tensor.device_type, tensor.device_id, tensor.ndim, tensor.code, tensor.bits, tensor.lanes, list(tensor.shape[:2]), list(tensor.strides[:2]), tensor.byte_offset])
    # Nobody takes it: the end of the capsule calls the deleter.
    say(len(_dlpack._live))
    del capsule
    say(len(_dlpack._live))
    # Somebody takes it: then the deleter alone.
    capsule = array.__dlpack__(max_version=versioned)
    address = pointer(capsule, name)
    rename(capsule, used)
    del capsule
    say(len(_dlpack._live))
    managed = kind.from_address(address)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(address)
    say(len(_dlpack._live))
for wrong in ({"copy": True}, {"dl_device": (1, 0)}):
    try: array.__dlpack__(**wrong)
    except BufferError as error: say(str(error))
say([hasattr(allocate(4, "bf16"), "__cuda_array_interface__"), hasattr(array, "__cuda_array_interface__")])
array.close(); array.close()
try: array.__cuda_array_interface__
except ValueError as error: say(str(error))
say(repr(array))
for wrong in ((4, "f33"), (0, "f32"), ("x", "f32")):
    try: allocate(*wrong)
    except ValueError as error: say(str(error).split(" ")[1])
`)
  const tensor = [true, 2, 1, 2, 2, 16, 1, [2, 3], [3, 1], 0]
  expect(await end).toEqual([
    [2, 1],
    ...[tensor, 1, 0, 1, 0],
    ...[tensor, 1, 0, 1, 0],
    'DeviceArray: it is not copied',
    'DeviceArray: it lies on (2, 1), not on (1, 0)',
    [false, true],
    'DeviceArray: it is closed',
    'DeviceArray(f16, [2, 3], device 1, own, closed)',
    'dtype',
    'shape',
    'shape',
  ])
})

test('a malformed description is refused, and its descriptors are closed', async (context) => {
  needsPython(context)
  const good = {
    type: 'shared-memory',
    version: 1,
    way: 'posix-fd',
    deviceUuid: device.uuid,
    byteLength: 4,
    byteOffset: 0,
    allocationBytes: 2 ** 21,
  }
  const wrong: [unknown, string][] = [
    ['{', 'TypeError: receive: message must be a description of shared memory, not None'],
    [{ ...good, version: 2 }, 'ValueError: receive: message.version must be 1, the only one known here, not 2'],
    [
      { ...good, way: 'process' },
      "ValueError: receive: message.way must be 'posix-fd', 'ipc' or 'pool', not 'process'",
    ],
    [{ ...good, byteLength: 0 }, 'ValueError: receive: message.byteLength must be an integer from 1, not 0'],
    [{ ...good, byteOffset: true }, 'ValueError: receive: message.byteOffset must be an integer from 0, not True'],
    [{ ...good, allocationBytes: 3 }, 'ValueError: receive: message.allocationBytes must be an integer from 4, not 3'],
    [
      { ...good, pieces: [1, 2] },
      `ValueError: receive: message.pieces must be a list of integers from 1 that are ${2 ** 21} together, not [1, 2]`,
    ],
    [{ ...good, pieces: [2 ** 20, 2 ** 20] }, 'ValueError: receive: message must come with 2 descriptors, not 1'],
    [{ ...good, dtype: 'f33' }, "ValueError: receive: message.dtype must be the name of a dtype, not 'f33'"],
    [
      { ...good, dtype: 'f32', shape: [2] },
      'ValueError: receive: message.shape and strides must stay within 4 bytes, not ([2], [1])',
    ],
    [
      { ...good, dtype: 'f32', shape: 7 },
      'ValueError: receive: message.shape must be a list of integers from 0, not 7',
    ],
    [
      { ...good, dtype: 'f32', shape: [1], strides: [-1] },
      'ValueError: receive: message.strides must be a list of integers from 0, not [-1]',
    ],
    [{ ...good, way: 'ipc' }, 'ValueError: receive: message must come with 0 descriptors, not 1'],
    [{ ...good, deviceUuid: 'GPU-0' }, 'LookupError: receive: the memory lies on device GPU-0'],
    [good, 'CudaError: cuMemImportFromShareableHandle'],
  ]
  const { socket, end } = python(`
import os
before = len(os.listdir("/proc/self/fd"))
for _ in range(${wrong.length}):
    try:
        receive(peer)
        say("nothing was refused")
    except Exception as error: say(f"{type(error).__name__}: {error}")
say(len(os.listdir("/proc/self/fd")) - before)
try: receive(peer)
except ConnectionResetError as error: say(str(error))
`)
  for (const [message] of wrong) {
    const text = typeof message === 'string' ? message : JSON.stringify(message)
    await socket.send({ bytes: Buffer.from(text), descriptors: [0] })
  }
  socket.dispose()
  const said = await end
  expect(said.slice(0, -2)).toEqual(wrong.map(([, words]) => expect.stringContaining(words)))
  // Descriptors of the driver may stay open.
  expect(said.at(-2)).toBeLessThanOrEqual(2)
  expect(said.at(-1)).toBe('the other end is closed')
})
