import { DisposedError, defineStruct, StatusError } from '@shoal/types'
import { afterAll, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, Event, maxActiveBlocks, setDevice, Stream, withDevice } = await import('@shoal/runtime')
const { Library, moduleLoadingMode } = await import('@shoal/runtime/library')
const { Graph, kernelNode } = await import('@shoal/runtime/graph')

/** Each thread adds `step`. The struct contains the start and the count, and has the alignment of a tensor map. */
const code = `
.version 8.5
.target sm_90
.address_size 64
.visible .global .align 4 .u32 runs;
.visible .entry fill(.param .u64 out, .param .align 64 .b8 range[128], .param .f32 step) {
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f32 %f<5>;
  ld.param.u64 %rd1, [out];
  ld.param.f32 %f1, [range];
  ld.param.u32 %r1, [range+4];
  ld.param.f32 %f2, [step];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 ret;
  cvt.rn.f32.u32 %f3, %r5;
  fma.rn.f32 %f4, %f3, %f2, %f1;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f4;
  ret;
}
.visible .entry place(.param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %cluster_nctarank;
  st.global.u32 [%rd3], %r2;
  ret;
}
`

/** A struct of 128 bytes, of which the kernel reads eight. */
const Range = defineStruct('Range', { begin: 'f32', count: 'u32', rest: ['u32', 30] })
const rest = new Array(30).fill(0)
const signature = ['ptr', Range, 'f32'] as const

const library = Library.loadSync(code)
const fill = library.kernel('fill', signature)
afterAll(() => library.dispose())

test('kernels of a Library accept structs and launch through libcudart', async () => {
  using stream = Stream.create()
  using out = DeviceBuffer.zeros('f32', 5)
  fill.launch({ grid: 2, block: 3, stream }, out, { begin: 1, count: 5, rest }, 0.5)
  await stream.synchronize()
  expect([...(await out.toArray())]).toEqual([1, 1.5, 2, 2.5, 3])
  // The struct is at a multiple of 64, as in the kernel.
  expect(fill.parameters).toEqual([
    { offset: 0, bytes: 8 },
    { offset: 64, bytes: 128 },
    { offset: 192, bytes: 4 },
  ])
  expect(() =>
    fill.launch({ grid: 1, block: 1, sharedMemory: 48 * 1024 * 1024 }, out, { begin: 0, count: 1, rest }, 1),
  ).toThrow(/^Kernel.launch: sharedMemory must be at most /)
  using other = withDevice(1, () => Stream.create())
  expect(() => fill.launch({ grid: 1, block: 1, stream: other }, out, { begin: 0, count: 1, rest }, 1)).toThrow(
    TypeError,
  )
})

test('a prepared launch and a graph node make the same launch', async () => {
  using stream = Stream.create()
  using out = DeviceBuffer.zeros('f32', 4)
  const step = fill.prepare({ grid: 1, block: 32, stream }, out, { begin: 0, count: 4, rest }, 1)
  step.set(1, { begin: 10, count: 2, rest }).launch()
  await stream.synchronize()
  expect([...(await out.toArray())]).toEqual([10, 11, 0, 0])
  using graph = Graph.create()
  graph.add(kernelNode(fill, { grid: 1, block: 32 }, out, { begin: 5, count: 3, rest }, 2))
  using exec = graph.instantiate()
  exec.launch(stream)
  await stream.synchronize()
  expect([...(await out.toArray())]).toEqual([5, 7, 9, 0])
})

test('launch attributes are passed to libcudart', async () => {
  using stream = Stream.create()
  using began = Event.create()
  using out = DeviceBuffer.zeros('u32', 4)
  const place = library.kernel('place', ['ptr'])
  place.with({ clusterDimension: 2, launchCompletionEvent: began }).launch({ grid: 4, block: 1, stream }, out)
  await stream.synchronize()
  expect([...(await out.toArray())]).toEqual([2, 2, 2, 2])
  place.launch({ grid: 4, block: 1, stream }, out)
  await stream.synchronize()
  expect([...(await out.toArray())]).toEqual([1, 1, 1, 1])
  expect(() => place.with({ clusterDimension: 3 }).launch({ grid: 4, block: 1, stream }, out)).toThrow(
    expect.objectContaining({
      api: 'cudaLaunchKernelExC',
      code: 'cudaErrorInvalidClusterSize',
      library: 'CUDA runtime',
    }),
  )
  expect(place.with({ clusterDimension: 2 }).maxActiveClusters({ grid: 4, block: 32 })).toBeGreaterThan(0)
})

test('occupancy functions accept kernels of a Library', () => {
  expect(maxActiveBlocks(fill, 256)).toBe(fill.maxActiveBlocks(256))
  expect(fill.maxActiveBlocks(256)).toBe(8)
  expect(fill.potentialBlockSize({ blockSizeLimit: 128 }).blockSize).toBe(128)
  expect(fill.attribute('MAX_THREADS_PER_BLOCK')).toBe(1024)
})

test('a Library defaults to the current device', async () => {
  using there = Library.loadSync(code, { device: 1 })
  expect(there.device).toBe(Device.get(1))
  setDevice(1)
  try {
    using here = await Library.load(code)
    expect(here.device.ordinal).toBe(1)
    using out = DeviceBuffer.zeros('u32', 1)
    there.kernel('place', ['ptr']).launch({ grid: 1, block: 1 }, out)
    Device.get(1).primaryContext.synchronizeSync()
    expect([...(await out.toArray())]).toEqual([1])
    expect(library.on(Device.get(1)).kernel('place', ['ptr']).module.device.ordinal).toBe(1)
  } finally {
    setDevice(0)
  }
})

test('a Library describes its kernels and variables', () => {
  expect(library.kernelCount).toBe(2)
  expect([...library.kernelNames].sort()).toEqual(['fill', 'place'])
  expect(library.global('runs', 'u32').length).toBe(1)
  expect(library.kernel('place', ['ptr']).handle).toBe(library.kernelHandle('place'))
  expect(moduleLoadingMode()).toBe('lazy')
  expect(Library).toHaveProperty('name', 'Library')
  expect(library).toBeInstanceOf(Library)
})

test('failures of a Library are errors of libcudart', async () => {
  const broken = code.replace('ret;', 'nonsense;')
  expect(() => Library.loadSync(broken)).toThrow(
    expect.objectContaining({ api: 'cudaLibraryLoadData', code: 'cudaErrorInvalidPtx' }),
  )
  await expect(Library.load(broken)).rejects.toThrow(/nonsense/)
  await expect(Library.loadFile('/nowhere/fill.ptx')).rejects.toThrow(/^Library.loadFile/)
  expect(() => library.kernel('axpy', [])).toThrow(
    expect.objectContaining({ api: 'cudaLibraryGetKernel', code: 'cudaErrorSymbolNotFound' }),
  )
  expect(() => library.kernel('fill', ['ptr'] as never)).toThrow('signature must name all parameters of fill')
  expect(() => Library.loadSync(code, { device: 7 })).toThrow(RangeError)
  expect(() => Library.loadSync(code, 5 as never)).toThrow(TypeError)
  expect(() => Library.loadSync(code, { level: 5 } as never)).toThrow(
    /^Library.loadSync: options must have only the keys/,
  )
})

test('a disposed Library and its kernels are refused', () => {
  const own = Library.loadSync(code)
  const place = own.kernel('place', ['ptr'])
  own.dispose()
  expect(() => place.launch({ grid: 1, block: 1 }, null)).toThrow(DisposedError)
  expect(() => own.kernelNames).toThrow(DisposedError)
  expect(StatusError).toBeTypeOf('function')
})
