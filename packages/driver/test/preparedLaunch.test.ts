import { inspect } from 'node:util'
import { defineStruct } from '@shoal/types'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compile, lastLaunch, shimEnvironment } from './support/shim.js'

const shim = compile('kernelShim')
Object.assign(process.env, shimEnvironment(shim), { SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, DisposedError, Module } = await import('@shoal/driver')

const good = { grid: 1, block: 32 }
let device: import('@shoal/driver').Device
let module: import('@shoal/driver').Module

beforeAll(() => {
  device = Device.get(0)
  module = Module.loadSync(device, '.version 8.0')
})

afterAll(() => {
  module.dispose()
})

function view(): DataView {
  const bytes = lastLaunch().arguments
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

test('a prepared launch repeats its packed arguments, and set() changes them', () => {
  using buffer = DeviceBuffer.zeros(device, 'f32', 4)
  using stream = device.createStream()
  const config = { grid: 3, block: [16, 2] as const, sharedMemory: 64, stream }
  const prepared = module.kernel('args_4_8', ['f32', 'ptr']).prepare(config, 1.5, buffer)
  const { launches } = lastLaunch()
  prepared.launch()
  prepared.launch()
  const expected = { grid: [3, 1, 1], block: [16, 2, 1], sharedMemory: 64, stream: stream.handle }
  expect(lastLaunch()).toMatchObject({ launches: launches + 2, ...expected })
  prepared.set(0, 2.5).launch()
  expect(view().getFloat32(0, true)).toBe(2.5)
  expect(view().getBigUint64(4, true)).toBe(buffer.address)
})

test('a prepared launch keeps the previous value if a new value is refused', () => {
  using buffer = DeviceBuffer.zeros(device, 'f32', 4)
  const prepared = module.kernel('args_4_8', ['f32', 'ptr']).prepare(good, 1.5, buffer)
  expect(() => prepared.set(0, '1' as unknown as number)).toThrow(/^PreparedLaunch\.set: value/)
  expect(() => prepared.set(0, '1' as unknown as number)).toThrow(TypeError)
  expect(() => prepared.set(1, 1 as never)).toThrow(TypeError)
  expect(() => prepared.set(1, -1n)).toThrow(RangeError)
  expect(() => prepared.set(2 as 0, 1)).toThrow(
    new RangeError('PreparedLaunch.set: index must be an integer from 0 to 1, not 2'),
  )
  expect(() => prepared.set(-1 as 0, 1)).toThrow(RangeError)
  expect(() => prepared.set(0.5 as 0, 1)).toThrow(TypeError)
  prepared.launch()
  expect(view().getFloat32(0, true)).toBe(1.5)
  expect(view().getBigUint64(4, true)).toBe(buffer.address)
})

test('a prepared launch keeps the previous struct if a new struct is refused halfway', () => {
  const Pair = defineStruct('Pair', { first: 'i32', second: 'i32' })
  const prepared = module.kernel('args_8', [Pair]).prepare(good, { first: 1, second: 2 })
  expect(() => prepared.set(0, { first: 10, second: 0.5 })).toThrow(/^PreparedLaunch\.set: value: Pair\.second/)
  prepared.launch()
  expect(Pair.decode(lastLaunch().arguments)).toEqual([{ first: 1, second: 2 }])
  prepared.set(0, { first: 10, second: 20 }).launch()
  expect(Pair.decode(lastLaunch().arguments)).toEqual([{ first: 10, second: 20 }])
})

test('a prepared launch refuses a disposed argument or stream', () => {
  const buffer = DeviceBuffer.zeros(device, 'f32', 4)
  const stream = device.createStream()
  const kernel = module.kernel('args_8', ['ptr'])
  const withBuffer = kernel.prepare(good, buffer)
  const onStream = kernel.prepare({ ...good, stream }, null)
  const { launches } = lastLaunch()
  buffer.dispose()
  stream.dispose()
  expect(() => withBuffer.launch()).toThrow(DisposedError)
  expect(() => onStream.launch()).toThrow(DisposedError)
  expect(lastLaunch().launches).toBe(launches)
  withBuffer.set(0, null).launch()
  expect(lastLaunch().launches).toBe(launches + 1)
})

test('a prepared launch refuses a disposed slice, even if its buffer is still usable', () => {
  using buffer = DeviceBuffer.zeros(device, 'f32', 4)
  const slice = buffer.slice(1)
  const prepared = module.kernel('args_8', ['ptr']).prepare(good, slice)
  prepared.launch()
  const { launches } = lastLaunch()
  slice.dispose()
  expect(() => prepared.launch()).toThrow(DisposedError)
  expect(() => prepared.launch()).toThrow(/args\[0\].* before PreparedLaunch\.launch/)
  expect(lastLaunch().launches).toBe(launches)
})

test('a prepared launch refuses a slice whose buffer was disposed', () => {
  const buffer = DeviceBuffer.zeros(device, 'f32', 4)
  const prepared = module.kernel('args_8', ['ptr']).prepare(good, buffer.slice(1))
  buffer.dispose()
  expect(() => prepared.launch()).toThrow(DisposedError)
})

test('a prepared launch asks foreign memory for its address each time', () => {
  let address = 64n
  const foreign = {
    get [Symbol.for('cuda.memory')]() {
      return { version: 0, address, byteLength: 8, deviceOrdinal: 0, context: 0n }
    },
  } as never
  const prepared = module.kernel('args_8', ['ptr']).prepare(good, foreign)
  address = 128n
  prepared.launch()
  expect(view().getBigUint64(0, true)).toBe(128n)
})

test('a prepared launch does not disturb other prepared or plain launches', () => {
  const kernel = module.kernel('args_4', ['i32'])
  const [first, second] = [kernel.prepare(good, 1), kernel.prepare(good, 2)]
  kernel.launch(good, 3)
  first.launch()
  expect(view().getInt32(0, true)).toBe(1)
  second.launch()
  expect(view().getInt32(0, true)).toBe(2)
})

test('a prepared launch is refused after the module was disposed', () => {
  const own = Module.loadSync(device, '.version 8.0')
  const prepared = own.kernel('args_4', ['i32']).prepare(good, 1)
  own.dispose()
  expect(() => prepared.launch()).toThrow(DisposedError)
})

test('a prepared launch is printed in one line', () => {
  const prepared = module.kernel('args_4', ['i32']).prepare({ grid: [4, 2], block: 32 }, 1)
  expect(inspect(prepared)).toBe("PreparedLaunch { kernel: 'args_4', grid: '4 × 2 × 1', block: '32 × 1 × 1' }")
  expect(String(prepared)).toBe('[object PreparedLaunch]')
})
