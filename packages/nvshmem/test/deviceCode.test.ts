import { inspect } from 'node:util'
import { Device, Module } from '@shoal/driver'
import { describe, expect, test } from 'vitest'
import { anything, onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()
const launch = (options: object, kernel: unknown = 1n): (() => unknown) => {
  return () =>
    pe.session.deviceCode.launchCollectively(
      anything(kernel),
      anything({ grid: 1, block: 1, stream: null, ...options }),
    )
}

/** A kernel that writes its grid, its block and its other parameters to memory. */
const tell = `.version 7.0
.target sm_70
.address_size 64
.visible .entry tell(.param .u64 memory, .param .u32 number, .param .f64 float, .param .u8 byte)
{
  .reg .b64 %to, %bits;
  .reg .b32 %r;
  .reg .b16 %h;
  ld.param.u64 %to, [memory];
  ${['nctaid', 'ntid']
    .flatMap((name) => ['x', 'y', 'z'].map((axis) => `%${name}.${axis}`))
    .map((name, index) => `mov.u32 %r, ${name};\n  st.global.u32 [%to + ${4 * index}], %r;`)
    .join('\n  ')}
  ld.param.u32 %r, [number];
  st.global.u32 [%to + 24], %r;
  ld.param.u8 %h, [byte];
  st.global.u8 [%to + 28], %h;
  ld.param.b64 %bits, [float];
  st.global.b64 [%to + 32], %bits;
  ret;
}`

describe('a collective launch', () => {
  test('has the given sizes and parameters, and missing sizes default to 1', async () => {
    const { session } = pe
    const { deviceCode } = session
    const device = Device.get(0)
    using module = Module.loadSync(device, tell)
    const kernel = module.kernel('tell', ['ptr', 'u32', 'f64', 'u8'])
    const memory = await session.allocate('u32', 10, { zeroed: true })
    const number = { dtype: 'u32', value: 4_000_000_000 } as const
    const rest = [number, { dtype: 'f64', value: -1.5 }, { dtype: 'bool', value: true }] as const
    const told = async (): Promise<number[]> => {
      await device.synchronize()
      return [...(await memory.toArray())]
    }
    const bits = [...new Uint32Array(Float64Array.of(-1.5).buffer)]
    deviceCode.launchCollectively(kernel, { grid: [2, 3, 1], block: [4, 1, 2], stream: null }, memory, ...rest)
    expect(await told()).toEqual([2, 3, 1, 4, 1, 2, 4_000_000_000, 1, ...bits])
    deviceCode.launchCollectively(kernel.handle, { grid: 2, block: [8], stream: null }, memory, ...rest)
    expect((await told()).slice(0, 6)).toEqual([2, 1, 1, 8, 1, 1])
    expect(() =>
      deviceCode.launchCollectively(
        kernel,
        { grid: 1, block: 1, sharedMemory: 2 ** 30, stream: null },
        memory,
        ...rest,
      ),
    ).toThrow('cuLaunchCooperativeKernel')
    const most = deviceCode.blocksPerMultiprocessor(kernel, 32)
    expect(most).toBeGreaterThan(1)
    expect(deviceCode.blocksPerMultiprocessor(kernel, 1024)).toBeLessThan(most)
    expect(deviceCode.blocksPerMultiprocessor(kernel, 32, 40_000)).toBeLessThan(most)
    await memory.dispose()
  })
})

describe('DeviceCode', () => {
  test('prints in one line', () => {
    expect(inspect(pe.session.deviceCode)).toBe('DeviceCode { pe: 0, deviceOrdinal: 0 }')
  })

  test("throws NVSHMEM's error if it refuses a module", async () => {
    await expect(pe.session.deviceCode.initializeModule({ handle: 1n })).rejects.toMatchObject({
      code: expect.stringMatching(/^NVSHMEMX_ERROR/),
      api: 'nvshmemx_cumodule_init',
    })
  })

  refuses(pe, [
    [
      'an invalid module',
      () => pe.session.deviceCode.initializeModule(anything({ handle: 5 })),
      'DeviceCode.initializeModule: module must be an object with a handle (a CUmodule), or the handle',
    ],
    ['an invalid library', () => pe.session.deviceCode.finalizeLibrary(anything(null)), /a CUlibrary.*, not null/],
    ['an invalid kernel', launch({}, 'k'), /kernel must be an object with a handle \(a CUfunction\)/],
    ...[0n, -1n, 2n ** 64n, { handle: 0n }, { handle: 2n ** 64n }, null].map(
      (kernel): [string, () => unknown, RegExp] => [
        `a kernel at ${kernel === null || typeof kernel === 'bigint' ? kernel : `{ handle: ${kernel.handle} }`}`,
        launch({}, kernel),
        /kernel must be an object with a handle \(a CUfunction\)/,
      ],
    ),
    ['a block too large', launch({ block: 1025 }), 'block[0] must be an integer from 1 to 1024, not 1025'],
    ['a grid of four dimensions', launch({ grid: [1, 1, 1, 1] }), /grid must be a number or one to three numbers/],
    ['an unknown option', launch({ threads: 5 }), /only the keys grid, block, stream, sharedMemory, not 'threads'/],
    [
      'an invalid parameter',
      () => pe.session.deviceCode.launchCollectively(1n, { grid: 1, block: 1, stream: null }, anything(5)),
      'parameters[0] must be memory or { dtype, value }, not 5',
    ],
    [
      'null for a parameter',
      () => pe.session.deviceCode.launchCollectively(1n, { grid: 1, block: 1, stream: null }, anything(null)),
      'parameters[0] must be memory or { dtype, value }, not null',
    ],
    [
      'a parameter of two numbers',
      () =>
        pe.session.deviceCode.launchCollectively(
          1n,
          { grid: 1, block: 1, stream: null },
          { dtype: 'complex64', value: 1 },
        ),
      'DeviceCode.launchCollectively: parameters[0] cannot be of complex64',
    ],
    [
      'memory of another device for a parameter',
      () =>
        pe.session.deviceCode.launchCollectively(
          1n,
          { grid: 1, block: 1, stream: null },
          pe.memory({ deviceOrdinal: 1 }),
        ),
      'parameters[0] belongs to device 1',
    ],
    ['no dimension', launch({ grid: [] }), /grid must be a number or one to three numbers/],
    ['threads that are too many', () => pe.session.deviceCode.blocksPerMultiprocessor(1n, 1025), RangeError],
  ])
})
