import { DisposedError, StatusError, SystemError } from '@shoal/types'
import { afterAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, Stream } = await import('@shoal/driver/shared')
const { Library, moduleLoadingMode } = await import('@shoal/driver/library')
const { Graph, kernelNode } = await import('@shoal/driver/graph')
const { TestDevice } = await import('./support/testDevice.js')

/** `scale` multiplies each element by the first of `factors` and counts its launches in `launches`. */
const code = `
.version 8.5
.target sm_80
.address_size 64
.visible .const .align 4 .f32 factors[2] = {0f40400000, 0f3F800000};
.visible .global .attribute(.managed) .align 4 .u32 launches = 7;
.visible .entry scale(.param .u64 data, .param .u32 count) .maxntid 256 {
  .reg .pred %p1; .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 ret;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  ld.const.f32 %f2, [factors];
  mul.f32 %f3, %f1, %f2;
  st.global.f32 [%rd3], %f3;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 ret;
  mov.u64 %rd4, launches;
  atom.global.add.u32 %r3, [%rd4], 1;
  ret;
}
.visible .entry nothing() { ret; }
`

const device = new TestDevice(0)
const other = new TestDevice(1)
const library = Library.loadSync(device, code)
afterAll(() => {
  library.dispose()
  device.dispose()
  other.dispose()
})

const signature = ['ptr', 'u32'] as const

function scaled(values: readonly number[], from = library): number[] {
  using memory = DeviceBuffer.from(from.device, Float32Array.from(values))
  from.kernel('scale', signature).launch({ grid: 1, block: 64 }, memory, values.length)
  from.device.primaryContext.synchronizeSync()
  return [...memory.toArraySync()]
}

test('a Library loads synchronously, on a native thread and from a file, and its kernels run like those of a Module', async () => {
  expect(scaled([1, 2, 3])).toEqual([3, 6, 9])
  using loaded = await Library.load(device, new TextEncoder().encode(code), { optimizationLevel: 2, cacheMode: 'ca' })
  expect(loaded.handle).not.toBe(library.handle)
  expect(scaled([5], loaded)).toEqual([15])
  const { writeFileSync } = await import('node:fs')
  const { scratchFolder } = await import('../../../tooling/config/src/scratchFolder.js')
  const file = `${scratchFolder()}/scale.ptx`
  writeFileSync(file, code)
  using fromFile = await Library.loadFile(device, file)
  expect(scaled([2], fromFile)).toEqual([6])
})

test('preserveImage keeps the image alive for the Library', () => {
  using preserved = Library.loadSync(device, code, { preserveImage: true, maxRegisters: 64 })
  expect(scaled([4, 5], preserved)).toEqual([12, 15])
})

describe('a Library reports', () => {
  test('its kernels by name', () => {
    expect(library.kernelCount).toBe(2)
    expect([...library.kernelNames].sort()).toEqual(['nothing', 'scale'])
    expect(library.kernelHandle('scale')).toBe(library.kernelHandle('scale'))
    expect(library.kernelHandle('scale')).not.toBe(library.kernelHandle('nothing'))
    expect(String(library)).toBe('[object Library]')
    expect(library.moduleHandle).toBeTypeOf('bigint')
    expect(library.compilerLog).toBe('')
  })

  test('the parameters of a kernel', () => {
    const expected = [
      { offset: 0, bytes: 8 },
      { offset: 8, bytes: 4 },
    ]
    expect(library.parameters('scale')).toEqual(expected)
    expect(library.parameters('nothing')).toEqual([])
    expect(library.kernel('scale', signature).parameters).toEqual(expected)
    expect(() => library.kernel('scale', ['ptr'])).toThrow(
      'Library.kernel: signature must name all parameters of scale, which has 2, not 1',
    )
    expect(() => library.kernel('scale', ['ptr', 'u64'])).toThrow(
      'Library.kernel: signature[1] must have 4 bytes, as in scale, not the 8 of u64',
    )
  })

  test('the loading mode of its code', () => {
    expect(moduleLoadingMode()).toBe('lazy')
  })
})

describe('a Library on another device', () => {
  test('has separate kernels and variables, and shares managed variables', async () => {
    const there = library.on(other)
    expect(there.device.ordinal).toBe(1)
    expect(there.handle).toBe(library.handle)
    library.global('factors', 'f32').copyFromSync(Float32Array.of(10, 1))
    expect(scaled([1, 2])).toEqual([10, 20])
    expect(scaled([1, 2], there)).toEqual([3, 6])
    library.global('factors', 'f32').copyFromSync(Float32Array.of(3, 1))
    const launches = library.managed('launches', 'u32')
    const before = launches.array[0] as number
    expect(before).toBeGreaterThanOrEqual(9)
    expect(there.managed('launches', 'u32').address).toBe(launches.address)
    scaled([1], there)
    expect(launches.array[0]).toBe(before + 1)
    there.dispose()
    expect(launches.array[0]).toBe(before + 1)
    expect(() => there.kernelCount).toThrow(DisposedError)
    expect(scaled([1])).toEqual([3])
  })

  test('has separate attributes', () => {
    const there = library.on(other)
    const name = 'PREFERRED_SHARED_MEMORY_CARVEOUT'
    const read = () => [library, there].map((each) => each.kernelAttribute('nothing', name))
    expect(read()).toEqual([-1, -1])
    there.setKernelAttribute('nothing', name, 25)
    expect(read()).toEqual([-1, 25])
    // The kernel object of a device is the same kernel.
    expect(there.kernel('nothing', []).attribute(name)).toBe(25)
    library.kernel('nothing', []).setAttribute(name, 50)
    expect(read()).toEqual([50, 25])
    expect(library.kernelAttribute('scale', 'MAX_THREADS_PER_BLOCK')).toBe(256)
    library.setKernelCacheConfig('scale', 'shared')
    library.kernel('scale', signature).setCacheConfig('equal')
  })
})

test('kernels of a Library work with attributes, graphs and occupancy', async () => {
  using stream = Stream.create(device)
  using memory = DeviceBuffer.from(device, Float32Array.of(1, 2))
  const kernel = library.kernel('scale', signature)
  kernel.with({ cooperative: true }).launch({ grid: 1, block: 32, stream }, memory, 2)
  const prepared = kernel.prepare({ grid: 1, block: 32, stream }, memory, 1)
  prepared.launch()
  using graph = Graph.create(device)
  graph.add(kernelNode(kernel, { grid: 1, block: 32 }, memory, 2))
  using exec = graph.instantiate()
  exec.launch(stream)
  await stream.synchronize()
  expect([...(await memory.toArray())]).toEqual([27, 18])
  expect(kernel.maxActiveBlocks(128)).toBeGreaterThan(0)
  expect(kernel.potentialBlockSize().blockSize).toBe(256)
})

test('kernels, variables and views of a Library end with it', () => {
  const own = Library.loadSync(device, code)
  const kernel = own.kernel('nothing', [])
  const factors = own.global('factors', 'f32')
  const { array } = own.managed('launches', 'u32')
  const view = own.on(other)
  using stream = Stream.create(device)
  expect(array[0]).toBe(7)
  own.dispose()
  own.dispose()
  expect(array.length).toBe(0)
  expect(view.disposed).toBe(true)
  expect(() => own.handle).toThrow(DisposedError)
  expect(() => kernel.launch({ grid: 1, block: 1, stream })).toThrow(DisposedError)
  expect(() => kernel.handle).toThrow(DisposedError)
  expect(() => factors.fill(0)).toThrow(DisposedError)
})

test('a managed variable whose array is still reachable keeps the Library loaded', () => {
  const own = Library.loadSync(device, code)
  const { buffer } = own.managed('launches', 'u32')
  // Node.js 20 has no `transfer`. In later versions such memory cannot move to other threads, although clones might.
  const { transfer } = buffer as { transfer?: () => ArrayBuffer }
  const moved = transfer === undefined ? structuredClone(buffer, { transfer: [buffer] }) : transfer.call(buffer)
  own.dispose()
  expect(new Uint32Array(moved)[0]).toBe(7)
})

test('a reset of the device ends its Library', async () => {
  const own = new TestDevice(1)
  const lost = Library.loadSync(own, code)
  const kernel = lost.kernel('nothing', [])
  await own.reset()
  expect(() => lost.handle).toThrow(DisposedError)
  expect(() => kernel.handle).toThrow(DisposedError)
  lost.dispose()
  own.dispose()
})

describe('a Library refuses', () => {
  test('code that does not compile, with the log', async () => {
    const broken = code.replace('ret; }', 'nonsense; }')
    expect(() => Library.loadSync(device, broken)).toThrow(StatusError)
    expect(() => Library.loadSync(device, broken)).toThrow(/cuLibraryLoadData.*\n.*line 26/s)
    await expect(Library.load(device, broken)).rejects.toThrow(/nonsense/)
    await expect(Library.loadFile(device, '/nowhere/scale.ptx')).rejects.toThrow(SystemError)
  })

  test.each([
    ['an empty image', ''],
    ['other bytes', Uint8Array.of(1, 0, 2, 3)],
    ['a number', 5],
  ])('%s', async (_, image) => {
    expect(() => Library.loadSync(device, image as never)).toThrow(/^Library.loadSync: image must /)
    await expect(Library.load(device, image as never)).rejects.toThrow(/^Library.load: image must /)
  })

  test.each([
    [{ optimizationLevel: 5 }, RangeError, 'optimizationLevel must be an integer from 0 to 4, not 5'],
    [{ optimizationLevel: 1.5 }, TypeError, 'optimizationLevel must be an integer from 0 to 4, not 1.5'],
    [{ maxRegisters: Number.NaN }, TypeError, 'maxRegisters must be an integer from 1 to 255, not NaN'],
    [{ cacheMode: 'cs' }, TypeError, 'cacheMode must be '],
    [{ preserveImage: 1 }, TypeError, 'preserveImage must be a boolean, not 1'],
    [{ level: 1 }, TypeError, 'options must have only the keys '],
    [null, TypeError, 'options must be a plain object such as '],
  ])('the options %o', async (options, kind, message) => {
    expect(() => Library.loadSync(device, code, options as never)).toThrow(kind)
    expect(() => Library.loadSync(device, code, options as never)).toThrow(`Library.loadSync: ${message}`)
    await expect(Library.loadFile(device, '/nowhere', options as never)).rejects.toThrow(`Library.loadFile: ${message}`)
  })

  test('unknown and malformed names', () => {
    const missing = expect.objectContaining({ code: 'CUDA_ERROR_NOT_FOUND' })
    expect(() => library.kernel('scaled', signature)).toThrow(missing)
    expect(() => library.kernelHandle('scaled')).toThrow(missing)
    expect(() => library.parameters('scaled')).toThrow(missing)
    expect(() => library.kernelAttribute('scaled', 'NUM_REGS')).toThrow(missing)
    expect(() => library.global('nothing')).toThrow(missing)
    expect(() => library.managed('factors')).toThrow(missing)
    expect(() => library.unifiedFunction('nothing')).toThrow(missing)
    for (const name of [5, null, undefined, {}] as never[]) {
      expect(() => library.kernel(name, signature)).toThrow(/^Library.kernel: name must be /)
      expect(() => library.kernelHandle(name)).toThrow(/^Library.kernelHandle: name must be /)
      expect(() => library.parameters(name)).toThrow(/^Library.parameters: name must be /)
      expect(() => library.kernelAttribute(name, 'NUM_REGS')).toThrow(/^Library.kernelAttribute: name must be /)
      expect(() => library.global(name)).toThrow(/^Library.global: name must be /)
      expect(() => library.managed(name)).toThrow(/^Library.managed: name must be /)
      expect(() => library.unifiedFunction(name)).toThrow(/^Library.unifiedFunction: name must be /)
    }
  })

  test('unknown attributes and preferences, and values that the driver refuses', () => {
    const kernel = library.kernel('scale', signature)
    expect(() => library.kernelAttribute('scale', 'REGISTERS' as never)).toThrow(
      /^Library.kernelAttribute: attribute must be a CUfunction_attribute such as 'NUM_REGS'/,
    )
    expect(() => library.setKernelAttribute('scale', 'NUM_REGS', 1.5)).toThrow(/^Library.setKernelAttribute: value /)
    expect(() => library.setKernelAttribute('scale', 'NUM_REGS', 1)).toThrow(StatusError)
    expect(() => library.setKernelCacheConfig('scale', 'most' as never)).toThrow(
      /^Library.setKernelCacheConfig: preference must be /,
    )
    expect(() => kernel.setAttribute('toString' as never, 1)).toThrow(/^Kernel.setAttribute: attribute must be /)
    expect(() => kernel.setAttribute('NUM_REGS', Number.NaN)).toThrow(/^Kernel.setAttribute: value must be /)
    expect(() => kernel.setAttribute('NUM_REGS', 1)).toThrow(StatusError)
    expect(() => kernel.setAttribute('MAX_DYNAMIC_SHARED_SIZE_BYTES', -1)).toThrow(StatusError)
    expect(() => kernel.setCacheConfig(1 as never)).toThrow(/^Kernel.setCacheConfig: preference must be /)
  })

  test('variables of another size, and wrong owners', () => {
    expect(() => library.global('launches', 'f64')).toThrow(
      'Library.global: dtype must fit launches, whose 4 bytes are no whole number of f64',
    )
    expect(() => library.managed('launches', 'f64')).toThrow(/^Library.managed: dtype must fit launches/)
    expect(() => library.on(1 as never)).toThrow(/^Library.on: /)
    expect(() => Library.loadSync(0 as never, code)).toThrow(/^Library.loadSync: /)
  })

  test('memory of the other device in a launch', () => {
    using there = DeviceBuffer.zeros(other, 'f32', 1)
    expect(() => library.kernel('scale', signature).launch({ grid: 1, block: 1 }, there, 1)).toThrow(
      /must be memory that device 0, where the kernel runs, can use/,
    )
  })
})
