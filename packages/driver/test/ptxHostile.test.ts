import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

// Invalid programs, by mistake or on purpose: the software device must refuse them or end the context, but nothing
// else.
Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '4', SHOAL_SIM_KERNEL_SECONDS: '2' })
const { Device, DeviceBuffer, Module } = await import('@shoal/driver')
const { CUresult, cuModuleLoad } = await import('@shoal/cuda-sys/driver')

const folder = mkdtempSync(join(tmpdir(), 'shoal-images-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const head = '.version 8.0\n.target sm_90\n.address_size 64\n'
const entry = (body: string, before = ''): string =>
  `${head}${before}\n.visible .entry k(.param .u64 p)\n{\n${body}\nret;\n}\n`

describe('a kernel that reads out of bounds', () => {
  test.each([
    [0, 1, '0xfffffffffffffffc'],
    [1, 32, '0xffffffffffffff80'],
  ])('fails on device %i with %i threads, at the highest addresses', async (ordinal, block, address) => {
    const device = Device.get(ordinal)
    const lane = 'mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;'
    const read = `mov.u64 %rd1, ${address}; add.u64 %rd1, %rd1, %rd2; ld.global.u32 %r2, [%rd1];`
    const module = Module.loadSync(device, entry(`.reg .b32 %r<3>; .reg .b64 %rd<3>; ${lane} ${read}`))
    const kernel = module.kernel('k', ['u64'])
    kernel.launch({ grid: 1, block }, 0n)
    await expect(device.synchronize()).rejects.toMatchObject({ code: 'CUDA_ERROR_ILLEGAL_ADDRESS' })
  })
})

test('a kernel that loops through barriers endlessly is stopped by the limit', async () => {
  const device = Device.get(2)
  const kernel = Module.loadSync(device, entry('L: bar.sync 0; bra L;')).kernel('k', ['u64'])
  kernel.launch({ grid: 1, block: 64 }, 0n)
  await expect(device.synchronize()).rejects.toMatchObject({ code: 'CUDA_ERROR_LAUNCH_TIMEOUT' })
})

describe('hostile modules', () => {
  const device = Device.get(3)

  test('a variable declared and then defined is one variable', async () => {
    for (const lines of [
      '.extern .global .u32 x;\n.global .u32 x = 7;\n',
      '.global .u32 x = 7;\n.extern .global .u32 x;\n',
    ]) {
      const body =
        '.reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [x]; st.global.u32 [%rd1], %r1;'
      using out = DeviceBuffer.zeros(device, 'u32', 1)
      Module.loadSync(device, entry(body, lines)).kernel('k', ['ptr']).launch({ grid: 1, block: 1 }, out)
      expect(await out.toArray()).toEqual(Uint32Array.of(7))
    }
  })

  test('a parameter in a predicate register is refused, with its line', () => {
    const text = `${head}.func f(.reg .pred %a)\n{\nret;\n}\n`
    expect(() => Module.loadSync(device, text)).toThrow(/CUDA_ERROR_INVALID_PTX/)
  })

  test.each([
    ['a wrapper with a pointer in it', [0xb1, 0x43, 0x62, 0x46, 1, 0, 0, 0, ...new Array<number>(8).fill(0x41)]],
    [
      'a fat binary that says it is longer',
      [0x50, 0xed, 0x55, 0xba, 1, 0, 0xff, 0xff, ...new Array<number>(8).fill(0x7f)],
    ],
  ])('a file with %s is refused', (_what, bytes) => {
    const file = join(folder, 'image')
    writeFileSync(file, Uint8Array.from(bytes))
    const out = new BigUint64Array(1)
    const status = device.primaryContext.run(() => cuModuleLoad(out, file))
    expect(status).toBe(CUresult.CUDA_ERROR_INVALID_IMAGE)
  })
})
