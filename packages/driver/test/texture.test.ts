import type { Device as DriverDevice } from '@shoal/driver'
import { DisposedError } from '@shoal/types'
import { describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '12' })
const { Device, DeviceBuffer, GrowableBuffer, Module, PinnedBuffer } = await import('@shoal/driver')
const { copyNode, Graph, kernelNode } = await import('@shoal/driver/graph')
const { CudaArray, SurfaceObject, TensorMap, TextureObject } = await import('@shoal/driver/texture')

const kernel = (body: string, parameters = '.param .u64 object, .param .u64 out'): string => `
.version 7.8
.target sm_70
.address_size 64
.visible .entry run(${parameters}) {
  .reg .b64 %rd<5>;
  .reg .b32 %r<10>;
  .reg .f32 %f<10>;
  .reg .b16 %h<5>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [object];
  ld.param.u64 %rd2, [out];
  mov.b32 %f9, 0f3F000000;
  mov.b32 %r9, 0;
  ${body}
  ret;
}
`
const read = kernel(`
  tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f9}];
  st.global.f32 [%rd2], %f1;`)
const write = (mode: string, at = 0): string =>
  kernel(`mov.b32 %r1, ${at}; sust.b.1d.b32.${mode} [%rd1, {%r1}], {%r9};`)

const device = Device.get(0)
const array = CudaArray.create(device, { width: 4, format: 'f32', surface: true })
array.copyFromSync(Float32Array.of(1, 2, 3, 4))
const texture = TextureObject.create(array)
const surface = SurfaceObject.create(array)
const out = DeviceBuffer.zeros(device, 'f32', 4)
const config = { grid: 1, block: 1 } as const

describe('texture arguments of kernels', () => {
  const taking = Module.loadSync(device, read).kernel('run', ['texture', 'ptr'])

  test('accept textures or their handles', async () => {
    for (const given of [texture, texture.handle as bigint]) {
      out.fill(0)
      taking.launch(config, given, out)
      expect((await out.toArray())[0]).toBe(1)
    }
  })

  test.each([
    [surface, /args\[0\] must be a TextureObject or a bigint handle, not .*SurfaceObject/],
    [array, /args\[0\] must be a TextureObject/],
    [7, /args\[0\] must be a TextureObject/],
    [null, /args\[0\] must be a TextureObject/],
    [-1n, /args\[0\] must be a bigint of 64 bits/],
    [{ parameterType: 'texture' }, /args\[0\] must be a TextureObject/],
  ])('refuse %o', (given, words) => {
    expect(() => taking.launch(config, given as never, out)).toThrow(words)
    expect(() => taking.prepare(config, given as never, out)).toThrow(words)
  })

  test('must belong to the device of the kernel', () => {
    const other = Device.get(1)
    using there = TextureObject.create(CudaArray.create(other, { width: 4, format: 'f32' }))
    expect(() => taking.launch(config, there, out)).toThrow(/args\[0\] must be a TextureObject of device 0/)
  })

  test('are not accepted as pointers, and have the size from the image', () => {
    const module = Module.loadSync(
      device,
      kernel('', '.param .u64 object, .param .u32 out').replace('ld.param.u64 %rd2', 'ld.param.u32 %r1'),
    )
    expect(() => module.kernel('run', ['texture', 'texture'])).toThrow(/texture/)
    expect(() => module.kernel('run', ['texture', 'sampler' as never])).toThrow(/signature\[1\] must be/)
    expect(() => taking.launch(config, texture, texture as never)).toThrow(TypeError)
  })

  test('are checked at each prepared launch and each graph launch', async () => {
    const made = CudaArray.create(device, { width: 4, format: 'f32' })
    made.copyFromSync(new Float32Array(4).fill(5))
    using look = TextureObject.create(made)
    const prepared = taking.prepare(config, look, out)
    using graph = Graph.create(device)
    graph.add(kernelNode(taking, config, look, out))
    using exec = graph.instantiate()
    using stream = device.createStream()
    prepared.launch()
    exec.launch(stream)
    await stream.synchronize()
    expect((await out.toArray())[0]).toBe(5)
    prepared.set(0, texture).launch()
    expect((await out.toArray())[0]).toBe(1)
    prepared.set(0, look)
    made.dispose()
    expect(() => prepared.launch()).toThrow(DisposedError)
    expect(() => exec.launch(stream)).toThrow(DisposedError)
    expect(() => prepared.set(0, look)).toThrow(DisposedError)
  })

  test('of type tensor map accept only tensor maps', () => {
    const module = Module.loadSync(
      device,
      kernel('', '.param .align 64 .b8 map[128], .param .u64 object, .param .u64 out'),
    )
    const mapped = module.kernel('run', ['tensorMap', 'u64', 'ptr'])
    const map = TensorMap.tiled(out, { dimensions: [4, 1], box: [4, 1] })
    mapped.launch(config, map, 1, out)
    expect(() => mapped.launch(config, texture as never, 1, out)).toThrow(/args\[0\] must be a TensorMap/)
    using elsewhere = DeviceBuffer.zeros(Device.get(1), 'f32', 4)
    const foreign = TensorMap.tiled(elsewhere, { dimensions: [4, 1], box: [4, 1] })
    expect(() => mapped.launch(config, foreign, 1, out)).toThrow(
      /the memory of args\[0\] must be memory that device 0, where the kernel runs, can use, not memory of device 1/,
    )
    device.enablePeerAccess(Device.get(1))
    mapped.launch(config, foreign, 1, out)
    device.disablePeerAccess(Device.get(1))
    expect(() => mapped.launch(config, 5n as never, 1, out)).toThrow(/args\[0\] must be a TensorMap/)
    expect(() => module.kernel('run', ['texture', 'u64', 'ptr'])).toThrow(/128/)
  })
})

describe('texel copies as graph nodes', () => {
  const other = CudaArray.create(device, { width: 4, height: 3, format: 'f32' })
  const memory = DeviceBuffer.zeros(device, 'f32', 4)

  test('run at each launch, from and to memory and other arrays, and can be updated', async () => {
    using rows = CudaArray.create(device, { width: 4, height: 3, format: 'f32' })
    using host = PinnedBuffer.from(device, Float32Array.of(1, 2, 3, 4))
    using result = PinnedBuffer.allocate(device, 'f32', 12)
    using stream = device.createStream({ nonBlocking: true })
    using graph = Graph.create(device)
    other.copyFromSync(new Float32Array(12))
    const region = { y: 1, width: 2, height: 2 }
    const into = graph.add(copyNode(rows, host, { region }))
    const across = graph.add(copyNode(other, rows, { region: { x: 2, width: 2, height: 2 }, at: { y: 1 } }), {
      dependencies: [into],
    })
    const back = graph.add(copyNode(result, other), { dependencies: [across] })
    expect(back.type).toBe('memcpy')
    rows.copyFromSync(new Float32Array(12))
    using exec = graph.instantiate()
    for (const first of [1, 7]) {
      host.array[0] = first
      exec.launch(stream)
      await stream.synchronize()
      expect([...result.array]).toEqual([0, 0, first, 2, 0, 0, 3, 4, 0, 0, 0, 0])
    }
    exec.updateNode(into, copyNode(rows, host, { region: { y: 1, width: 1, height: 2 }, pitch: 8 }))
    rows.copyFromSync(new Float32Array(12))
    exec.launch(stream)
    await stream.synchronize()
    expect([...result.array]).toEqual([0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 0, 0])
  })

  test('are not launched after an array was disposed', () => {
    const made = CudaArray.create(device, { width: 4, format: 'f32' })
    using graph = Graph.create(device)
    graph.add(copyNode(made, memory))
    using exec = graph.instantiate()
    made.dispose()
    expect(() => exec.launch()).toThrow(DisposedError)
    expect(() => graph.add(copyNode(made, memory))).toThrow(DisposedError)
    expect(() => copyNode(memory, made)).toThrow(DisposedError)
  })

  test.each([
    [
      () => copyNode(array, new Float32Array(4) as never),
      /copyNode: source must be device, page-locked or managed memory/,
    ],
    [() => copyNode(array, 7 as never), /copyNode: source must be/],
    [() => copyNode(array, memory, { stream: null } as never), /copyNode: options must have only the keys/],
    [() => copyNode(array, memory, { region: { x: 4 } }), /copyNode: region.x must be an integer from 0 to 3/],
    [() => copyNode(array, memory, { region: { width: 3 } }), /copyNode: source must be of 12 bytes/],
    [() => copyNode(memory, array, { at: { x: 1 } }), /copyNode: at must be left out where target is no array/],
    [() => copyNode(array, other, { region: { width: 2 }, pitch: 16 }), /copyNode: pitch must be left out, like rows/],
    [() => copyNode(memory, memory, { region: {} }), /copyNode: options must have only the keys/],
    [() => copyNode(array, DeviceBuffer.zeros(Device.get(1), 'f32', 4)), /copyNode: source must be memory of device 0/],
  ])('with wrong arguments are refused by name: %s', (make, words) => {
    expect(make).toThrow(words)
  })
})

test('a texture covers memory of several mappings', async () => {
  using memory = GrowableBuffer.reserve(device, 'f32', { maximumLength: 1 << 20 })
  memory.resize(1 << 19)
  memory.resize(1 << 20)
  memory.buffer.slice(600_000, 600_001).fill(7)
  const ptx = kernel(`
  mov.b32 %r1, 600000;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];
  st.global.f32 [%rd2], %f1;`)
  using look = TextureObject.create(memory.buffer)
  Module.loadSync(device, ptx).kernel('run', ['texture', 'ptr']).launch(config, look, out)
  expect((await out.toArray())[0]).toBe(7)
})

describe('faults that destroy the context', () => {
  let next = 2
  /** Runs a kernel on a separate device with the handle from `make`. Returns the error's code. */
  async function failure(ptx: string, make: (device: DriverDevice) => bigint): Promise<string | undefined> {
    const own = Device.get(next++)
    const memory = DeviceBuffer.zeros(own, 'f32', 4)
    Module.loadSync(own, ptx).kernel('run', ['u64', 'ptr']).launch(config, make(own), memory)
    return own.synchronize().then(
      () => undefined,
      (error: { code: string }) => error.code,
    )
  }
  const arrayOf = (owner: DriverDevice) => CudaArray.create(owner, { width: 4, format: 'f32', surface: true })

  test('a texture over freed memory', async () => {
    const code = await failure(read, (owner) => {
      const memory = DeviceBuffer.zeros(owner, 'f32', 4)
      const { handle } = TextureObject.create(memory)
      memory.disposeSync()
      return handle
    })
    expect(code).toBe('CUDA_ERROR_ILLEGAL_ADDRESS')
  })

  test('a texture of a destroyed array, and a handle that is not a texture', async () => {
    const gone = (owner: DriverDevice): bigint => {
      const made = arrayOf(owner)
      const { handle } = TextureObject.create(made)
      made.disposeSync()
      return handle
    }
    expect(await failure(read, gone)).toBe('CUDA_ERROR_ILLEGAL_ADDRESS')
    expect(await failure(read, () => 99n)).toBe('CUDA_ERROR_ILLEGAL_ADDRESS')
    expect(await failure(read, (owner) => SurfaceObject.create(arrayOf(owner)).handle)).toBe(
      'CUDA_ERROR_ILLEGAL_ADDRESS',
    )
    expect(await failure(write('zero'), (owner) => TextureObject.create(arrayOf(owner)).handle)).toBe(
      'CUDA_ERROR_ILLEGAL_ADDRESS',
    )
  })

  test('an out-of-range or misaligned surface access in trap mode', async () => {
    const make = (owner: DriverDevice): bigint => SurfaceObject.create(arrayOf(owner)).handle
    expect(await failure(write('trap', 16), make)).toBe('CUDA_ERROR_LAUNCH_FAILED')
    expect(await failure(write('zero', 16), make)).toBeUndefined()
    expect(await failure(write('clamp', -4), make)).toBeUndefined()
    expect(await failure(write('zero', 2), make)).toBe('CUDA_ERROR_MISALIGNED_ADDRESS')
  })
})

describe('unsupported texture instructions', () => {
  const f4 = '{%f1, %f2, %f3, %f4}'
  const r4 = '{%r1, %r2, %r3, %r4}'
  test.each([
    [`tex.2dms.v4.f32.s32 ${f4}, [%rd1, ${r4}];`, /tex\.2dms/],
    [`tex.2d.v4.f32.f32 ${f4}, [%rd1, %rd2, {%f1, %f2}];`, /a sampler of its own/],
    [`tex.2d.v4.f32.f32 ${f4}, [%rd1, {%f1, %f2}], {%r1, %r2}, %f1;`, /a comparison of depths/],
    [`tld4.r.cube.v4.f32.f32 ${f4}, [%rd1, ${f4}];`, /tld4\.r\.cube/],
    ['txq.channel_order.b32 %r1, [%rd1];', /txq\.channel_order/],
    ['suq.memory_layout.b32 %r1, [%rd1];', /suq\.memory_layout/],
    ['sust.p.1d.b32.trap [%rd1, {%r1}], {%r2};', /sust\.p/],
    ['sured.p.add.1d.u32.trap [%rd1, {%r1}], %r2;', /sured\.p/],
    ['istypep.texref %p1, %rd1;', /istypep/],
  ])('%s is refused by name', (line, words) => {
    expect(() => Module.loadSync(device, kernel(line))).toThrow('CUDA_ERROR_NO_BINARY_FOR_GPU')
    expect(() => Module.loadSync(device, kernel(line))).toThrow(words)
  })

  test.each([
    `tex.2d.v2.f32.f32 {%f1, %f2}, [%rd1, {%f1, %f2}];`,
    `tex.2d.v4.f32.f32 ${f4}, [%rd1, {%f1}];`,
    `tex.cube.v4.f32.s32 ${f4}, [%rd1, ${r4}];`,
    `tex.level.2d.v4.f32.f32 ${f4}, [%rd1, {%f1, %f2}];`,
    `tex.2d.v4.f32.f32 ${f4}, [%rd1];`,
    `tex.2d.v4.f64.f32 ${f4}, [%rd1, {%f1, %f2}];`,
    'suld.b.1d.b32 {%r1}, [%rd1, {%r2}];',
    'suld.b.1d.v4.b64.trap {%rd1, %rd2, %rd3, %rd4}, [%rd1, {%r2}];',
    'sured.b.1d.u32.trap [%rd1, {%r1}], %r2;',
    'sured.b.add.1d.f32.trap [%rd1, {%r1}], %f2;',
  ])('%s is refused as an instruction', (line) => {
    expect(() => Module.loadSync(device, kernel(line))).toThrow('CUDA_ERROR_INVALID_PTX')
  })
})

test('textures support half floats, residency and offsets', async () => {
  const ptx = kernel(`
  tex.1d.v4.f16.f32 {%h1, %h2, %h3, %h4}|%p1, [%rd1, {%f9}];
  st.global.b16 [%rd2], %h1;
  selp.u32 %r1, 1, 0, %p1;
  st.global.u32 [%rd2+4], %r1;
  tex.1d.v2.f16x2.s32 {%r1, %r2}, [%rd1, {%r9}], {2};
  st.global.u32 [%rd2+8], %r1;
  tex.base.1d.v4.f32.f32 {%f1, _, _, _}, [%rd1, {%f9}], {1};
  st.global.f32 [%rd2+12], %f1;`)
  const words = DeviceBuffer.zeros(device, 'u32', 4)
  Module.loadSync(device, ptx).kernel('run', ['texture', 'ptr']).launch(config, texture, words)
  expect(await words.toArray()).toEqual(
    Uint32Array.of(0x3c00, 1, 0x4200, new Uint32Array(Float32Array.of(2).buffer)[0] as number),
  )
})
