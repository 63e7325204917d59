import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Device,
  DeviceBuffer,
  DisposedError,
  defineStruct,
  type Kernel,
  Module,
  StatusError,
  SystemError,
} from '@shoal/driver'
import type { CaseContext, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

const signature = ['f32', 'ptr', 'ptr', 'i32'] as const
type Axpy = Kernel<typeof signature>

const ptx = `.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
`

const Line = defineStruct('Line', { count: 'u8', slope: 'f64', bias: 'i32' })

/**
 * Computes count × slope + bias of a `Line` passed by value. The result is multiplied by the parameter before the
 * `Line`.
 */
const linePtx = `.version 7.0
.target sm_75
.address_size 64
.visible .entry line(
  .param .f32 factor,
  .param .align 8 .b8 line[24],
  .param .u64 result
) {
  .reg .b16 %rs<2>;
  .reg .b32 %r<2>;
  .reg .f32 %f<2>;
  .reg .f64 %fd<7>;
  .reg .b64 %rd<3>;
  ld.param.f32 %f1, [factor];
  ld.param.u8 %rs1, [line];
  ld.param.f64 %fd1, [line+8];
  ld.param.u32 %r1, [line+16];
  ld.param.u64 %rd1, [result];
  cvta.to.global.u64 %rd2, %rd1;
  cvt.rn.f64.u16 %fd2, %rs1;
  cvt.rn.f64.s32 %fd3, %r1;
  fma.rn.f64 %fd4, %fd2, %fd1, %fd3;
  cvt.f64.f32 %fd5, %f1;
  mul.rn.f64 %fd6, %fd4, %fd5;
  st.global.f64 [%rd2], %fd6;
  ret;
}
`

async function loadAxpy(t: CaseContext, file = 'axpy.ptx', device: Device = t.device): Promise<Axpy> {
  const module = t.own(await Module.loadFile(device, join(t.kernels, file)))
  return module.kernel('axpy', signature)
}

/** Computes a * x + y with one rounding, like the device's fused multiply-add. */
function fusedMultiplyAdd(a: number, x: number, y: number): number {
  // The product of two f32 is exact in f64. The sum may not be. If it looks like a tie, its error decides.
  const product = a * x
  const sum = product + y
  const rounded = Math.fround(sum)
  const other = rounded + 2 * (sum - rounded)
  if (other === rounded || Math.fround(other) !== other) return rounded
  const part = sum - product
  const error = product - (sum - part) + (y - part)
  if (error === 0) return rounded
  return error > 0 ? Math.max(rounded, other) : Math.min(rounded, other)
}

/** Checks every element. A device may round once (fused), or after the multiplication and again after the addition. */
function checkAxpy(a: number, x: Float32Array, y: Float32Array, result: Float32Array): void {
  for (let index = 0; index < x.length; index += 1) {
    const [xi, yi] = [x[index] as number, y[index] as number]
    const fused = fusedMultiplyAdd(a, xi, yi)
    if (result[index] === fused || result[index] === Math.fround(Math.fround(a * xi) + yi)) continue
    assert.fail(`element ${index} of ${x.length}: ${result[index]}, expected ${fused}`)
  }
}

async function runAxpy(t: CaseContext, axpy: Axpy, length: number): Promise<void> {
  const { device } = axpy.module
  const stream = t.own(device.createStream({ nonBlocking: true }))
  const a = Math.fround(t.random.signed() * 4)
  const [hostX, hostY] = [t.random.floats(length), t.random.floats(length)]
  const x = t.own(DeviceBuffer.from(device, hostX))
  const y = t.own(DeviceBuffer.from(device, hostY))
  axpy.launch({ grid: Math.ceil(length / 256), block: 256, stream }, a, x, y, length)
  checkAxpy(a, hostX, hostY, await y.toArray({ stream }))
  assertSameBits(await x.toArray({ stream }), hostX, 'x is only read')
}

export const kernelSuite: Suite = {
  name: 'driver kernels',
  cases: [
    {
      name: 'the software device names line and instruction of PTX that it cannot run',
      requires: { only: 'software' },
      async run(t) {
        const formatted = ptx.replace(
          '{ ret; }',
          '{\n.reg .b64 %rd<2>;\n.reg .b32 %r<3>;\nsust.p.1d.b32.trap [%rd1, {%r1}], {%r2};\n}',
        )
        const refused = (error: unknown): boolean =>
          error instanceof StatusError &&
          error.code === 'CUDA_ERROR_NO_BINARY_FOR_GPU' &&
          error.api === 'cuModuleLoadDataEx' &&
          /line 7; .*'sust\.p\.1d\.b32\.trap' is not supported/.test(error.description)
        assert.throws(() => Module.loadSync(t.device, formatted), refused)
        await assert.rejects(Module.load(t.device, formatted), refused)
        t.own(DeviceBuffer.zeros(t.device, 'u8', 3))
      },
    },
    {
      name: 'images that are none are refused, without a crash',
      async run(t) {
        const elf = new Uint8Array(64)
        elf.set([0x7f, 0x45, 0x4c, 0x46])
        new DataView(elf.buffer).setBigUint64(0x28, 1000n, true)
        new DataView(elf.buffer).setUint32(0x3a, (3 << 16) | 64, true)
        assert.throws(() => Module.loadSync(t.device, elf), RangeError)
        const fat = Uint8Array.of(0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 255, 255, 0, 0, 0, 0, 0, 0)
        assert.throws(() => Module.loadSync(t.device, fat), RangeError)
        assert.throws(() => Module.loadSync(t.device, fat.subarray(0, 10)), RangeError)
        assert.throws(() => Module.loadSync(t.device, ''), RangeError)
        assert.throws(() => Module.loadSync(t.device, new Uint8Array(0)), RangeError)
        assert.throws(() => Module.loadSync(t.device, `${ptx}\0`), TypeError)
        assert.throws(() => Module.loadSync(t.device, Uint8Array.of(1, 0, 2)), TypeError)
        assert.throws(() => Module.loadSync(t.device, 5 as unknown as string), TypeError)
        assert.throws(() => Module.loadSync(t.device, ptx, { maxRegisters: Number.NaN }), TypeError)
        assert.throws(() => Module.loadSync(t.device, ptx, { optimizationLevel: 5 }), RangeError)
        assert.throws(() => Module.loadSync(t.device, 'this is not PTX'), StatusError)
        await assert.rejects(
          Module.loadFile(t.device, '/nowhere/axpy.ptx'),
          (error) => error instanceof SystemError && error.code === 'ENOENT' && error.api === 'Module.loadFile',
        )
      },
    },
    {
      name: 'axpy from PTX, 2^24 + 3 elements, every one checked',
      requires: { kernels: true },
      timeout: 120_000,
      async run(t) {
        await runAxpy(t, await loadAxpy(t), 2 ** 24 + 3)
      },
    },
    {
      name: 'axpy from a cubin, 2^24 + 3 elements, every one checked',
      requires: { kernels: true, only: 'hardware' },
      timeout: 120_000,
      async run(t) {
        const { major, minor } = t.device.computeCapability
        await runAxpy(t, await loadAxpy(t, `axpy.sm_${major}${minor}.cubin`), 2 ** 24 + 3)
      },
    },
    {
      name: 'axpy on every device, odd lengths',
      requires: { kernels: true },
      async run(t) {
        for (const device of t.devices) {
          const axpy = await loadAxpy(t, 'axpy.ptx', device)
          for (const length of [1, 255, 257, t.random.integer(10_000, 99_999)]) await runAxpy(t, axpy, length)
        }
      },
    },
    {
      name: 'a prepared launch repeats, and one argument can change',
      requires: { kernels: true },
      async run(t) {
        const axpy = await loadAxpy(t)
        const stream = t.own(t.device.createStream())
        const x = t.own(DeviceBuffer.from(t.device, new Float32Array(1000).fill(1)))
        const y = t.own(DeviceBuffer.zeros(t.device, 'f32', 1000))
        const prepared = axpy.prepare({ grid: 4, block: 256, stream }, 2, x, y, 1000)
        prepared.launch()
        prepared.launch()
        prepared.set(0, 0.5).launch()
        prepared.set(3, 10).launch()
        const expected = new Float32Array(1000).fill(4.5)
        expected.fill(5, 0, 10)
        assertSameBits(await y.toArray({ stream }), expected, 'y')
        x.dispose()
        assert.throws(() => prepared.launch(), DisposedError)
        assert.throws(() => prepared.set(4 as 3, 1), RangeError)
        assert.throws(() => prepared.set(3, 1.5), TypeError)
      },
    },
    {
      name: 'a struct by value arrives as C lays it out',
      requires: { kernels: true },
      async run(t) {
        const module = t.own(await Module.load(t.device, linePtx))
        const kernel = module.kernel('line', ['f32', Line, 'ptr'])
        const result = t.own(DeviceBuffer.zeros(t.device, 'f64', 2))
        kernel.launch({ grid: 1, block: 1 }, 2, { count: 200, slope: 0.1, bias: -3 }, result)
        const prepared = kernel.prepare({ grid: 1, block: 1 }, -1, { count: 1, slope: 2, bias: 3 }, result.slice(1))
        assert.throws(() => prepared.set(1, { count: 256, slope: 2, bias: 3 }), RangeError)
        prepared.set(1, { count: 4, slope: 0.5, bias: 5 }).launch()
        assertSameBits(await result.toArray(), Float64Array.of(34, -7), 'result')
        const Small = defineStruct('Small', { count: 'u8', slope: 'f32', bias: 'i32' })
        assert.throws(() => module.kernel('line', ['f32', Small, 'ptr']), TypeError)
      },
    },
    {
      name: "a signature that is not the image's is refused",
      requires: { kernels: true },
      async run(t) {
        const { module } = await loadAxpy(t)
        assert.throws(() => module.kernel('axpy', ['f32', 'ptr', 'ptr']), TypeError)
        assert.throws(() => module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i32', 'i32']), TypeError)
        assert.throws(() => module.kernel('axpy', ['f64', 'ptr', 'ptr', 'i32']), TypeError)
        assert.throws(() => module.kernel('axpy', ['f32', 'ptr', 'ptr', 'i31' as 'i32']), TypeError)
        assert.throws(() => module.kernel('axpy\0', signature), TypeError)
        assert.throws(
          () => module.kernel('no_such_kernel', []),
          (error) => error instanceof StatusError && error.code === 'CUDA_ERROR_NOT_FOUND',
        )
      },
    },
    {
      name: 'sizes and arguments that cannot be are refused before the call',
      requires: { kernels: true },
      async run(t) {
        const axpy = await loadAxpy(t)
        const x = t.own(DeviceBuffer.zeros(t.device, 'f32', 8))
        const gone = DeviceBuffer.zeros(t.device, 'f32', 8)
        gone.dispose()
        const good = { grid: 1, block: 8 }
        const range = [
          { ...good, grid: 0 },
          { ...good, grid: -1 },
          { ...good, grid: [1, 65536] as const },
          { ...good, block: 1025 },
          { ...good, block: [1024, 2] as const },
          { ...good, block: [1, 1, 65] as const },
          { ...good, sharedMemory: -1 },
          { ...good, sharedMemory: 1 << 30 },
        ]
        const unknown = { ...good, sharedBytes: 64 } as typeof good
        assert.throws(
          () => axpy.launch(unknown, 1, x, x, 8),
          /^TypeError: Kernel\.launch: config .* not 'sharedBytes'$/,
        )
        for (const config of range) assert.throws(() => axpy.launch(config, 1, x, x, 8), RangeError)
        for (const grid of [Number.NaN, 1.5, '1', [], [1, 2, 3, 4], null]) {
          assert.throws(() => axpy.launch({ ...good, grid: grid as number }, 1, x, x, 8), TypeError)
        }
        assert.throws(() => axpy.launch(good, '1' as unknown as number, x, x, 8), TypeError)
        assert.throws(() => axpy.launch(good, 1, 5 as unknown as bigint, x, 8), TypeError)
        assert.throws(() => axpy.launch(good, 1, x, x, 8.5), TypeError)
        assert.throws(() => axpy.launch(good, 1, x, x, 2 ** 31), RangeError)
        assert.throws(() => axpy.launch(good, 1, x, x, undefined as unknown as number), TypeError)
        assert.throws(() => (axpy.launch as (...args: unknown[]) => void).call(axpy, good, 1, x, x), TypeError)
        assert.throws(() => axpy.launch(good, 1, gone, x, 8), DisposedError)
        axpy.launch(good, 1, null, null, 0)
        await t.device.defaultStream.synchronize()
      },
    },
    {
      name: 'memory of another device is refused unless peer access is on',
      requires: { kernels: true, devices: 2 },
      async run(t) {
        const [first, second] = t.devices as [Device, Device]
        const axpy = await loadAxpy(t)
        const own = t.own(DeviceBuffer.zeros(first, 'f32', 8))
        const foreign = t.own(DeviceBuffer.from(second, new Float32Array(8).fill(3)))
        const stream = t.own(second.createStream())
        const launch = (): void => axpy.launch({ grid: 1, block: 8 }, 2, foreign, own, 8)
        assert.throws(launch, TypeError)
        assert.throws(() => axpy.launch({ grid: 1, block: 8, stream }, 2, own, own, 8), TypeError)
        if (!first.canAccessPeer(second)) t.skip('these devices have no peer access')
        first.enablePeerAccess(second)
        t.defer(() => first.disablePeerAccess(second))
        launch()
        assertSameBits(await own.toArray(), new Float32Array(8).fill(6), 'through peer access')
      },
    },
    {
      name: 'occupancy lies within what the device has, and the block size found is confirmed',
      requires: { kernels: true },
      async run(t) {
        const axpy = await loadAxpy(t)
        const threads = t.device.attribute('MAX_THREADS_PER_MULTIPROCESSOR')
        const blocks = t.device.attribute('MAX_BLOCKS_PER_MULTIPROCESSOR')
        const shared = t.device.attribute('MAX_SHARED_MEMORY_PER_MULTIPROCESSOR')
        const multiprocessors = t.device.attribute('MULTIPROCESSOR_COUNT')
        const most = Math.min(axpy.maxThreadsPerBlock, 1024)
        for (const size of [1, 32, 33, t.random.integer(34, most - 1), most]) {
          const active = axpy.maxActiveBlocks(size)
          assert.ok(active >= 1 && active <= blocks, `${active} blocks of ${size} threads`)
          assert.ok(active * size <= threads, `${active} blocks of ${size} threads`)
          const sharedMemory = axpy.availableSharedMemory(active, size)
          assert.ok(sharedMemory * active <= shared, `${sharedMemory} bytes for each of ${active} blocks`)
        }
        const { blockSize, minGridSize } = axpy.potentialBlockSize()
        assert.ok(blockSize >= 1 && blockSize <= most, `${blockSize}`)
        const active = axpy.maxActiveBlocks(blockSize)
        assert.equal(minGridSize, active * multiprocessors)
        for (let size = 32; size <= most; size += 32) {
          assert.ok(axpy.maxActiveBlocks(size) * size <= active * blockSize, `${size} threads keep more of them busy`)
        }
        const limited = axpy.potentialBlockSize({ blockSizeLimit: 100 })
        assert.ok(limited.blockSize <= 100, `${limited.blockSize}`)
        assert.throws(() => axpy.maxActiveBlocks(0), RangeError)
      },
    },
    {
      name: 'errors of the compiler come with its log',
      requires: { kernels: true },
      run(t) {
        const text = readFileSync(join(t.kernels, 'axpy.ptx'), 'utf8').replace('ld.param', 'ld.parum')
        assert.throws(
          () => Module.loadSync(t.device, text),
          (error) => error instanceof StatusError && /ptxas|parum|line/.test(error.description),
        )
      },
    },
    {
      name: 'a module and its kernels are refused after dispose()',
      requires: { kernels: true },
      async run(t) {
        const axpy = await loadAxpy(t)
        axpy.module.dispose()
        axpy.module.dispose()
        assert.throws(() => axpy.launch({ grid: 1, block: 1 }, 1, null, null, 0), DisposedError)
        assert.throws(() => axpy.prepare({ grid: 1, block: 1 }, 1, null, null, 0), DisposedError)
        assert.throws(() => axpy.module.kernel('axpy', signature), DisposedError)
      },
    },
  ],
}
