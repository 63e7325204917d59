import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { DisposedError, StatusError } from '@shoal/types'
import { afterAll, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { Device, DeviceBuffer, Module } = await import('@shoal/driver')
const { Linker } = await import('@shoal/driver/library')

const head = (version = '8.0', target = 'sm_80') => `.version ${version}\n.target ${target}\n.address_size 64\n`

/** Calls `weigh` and reads `bias` of another image. Its `helper` and `table` are private. */
const kernels = `${head()}
.file 1 "kernels.cu"
.extern .func (.param .b32 result) weigh(.param .b32 value);
.extern .global .align 4 .u32 bias;
.global .align 4 .u32 table[2] = {1, 2};
.func (.param .b32 result) helper(.param .b32 value) {
  .reg .b32 %r<4>; .reg .b64 %rd<2>;
  ld.param.u32 %r1, [value];
  mov.u64 %rd1, table;
  ld.global.u32 %r2, [%rd1+4];
  add.u32 %r3, %r1, %r2;
  st.param.b32 [result], %r3;
  ret;
}
.visible .entry run(.param .u64 out, .param .u32 value) {
  .reg .b32 %r<6>; .reg .b64 %rd<4>;
  .loc 1 7 3
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call.uni (b), weigh, (a);
    ld.param.b32 %r2, [b]; }
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r2;
    call.uni (b), helper, (a);
    ld.param.b32 %r3, [b]; }
  ld.global.u32 %r4, [bias];
  add.u32 %r5, %r3, %r4;
  st.global.u32 [%rd1], %r5;
  ret;
}
`

/** Defines `weigh` and `bias`, and separate `helper` and `table`. */
const functions = `${head('8.5', 'sm_90')}
.visible .global .align 4 .u32 bias = 1000;
.global .align 4 .u32 table[1] = {100};
.func (.param .b32 result) helper(.param .b32 value) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [value];
  ld.global.u32 %r2, [table];
  mul.lo.u32 %r3, %r1, %r2;
  st.param.b32 [result], %r3;
  ret;
}
.visible .func (.param .b32 result) weigh(.param .b32 value) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [value];
  { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call.uni (b), helper, (a);
    ld.param.b32 %r2, [b]; }
  st.param.b32 [result], %r2;
  ret;
}
`

const weigh = (linkage: string, factor: number) => `${head()}
.visible .global .align 4 .u32 bias${factor} = ${factor};
${linkage} .func (.param .b32 result) weigh(.param .b32 value) {
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [value];
  mul.lo.u32 %r2, %r1, ${factor};
  st.param.b32 [result], %r2;
  ret;
}
`
const bias = `${head()}.visible .global .align 4 .u32 bias = 0;\n`

const device = Device.get(0)
afterAll(() => device.dispose())

/** Returns the result of a linked image's `run` for 3. */
function result(image: Uint8Array): number {
  using module = Module.loadSync(device, image)
  using out = DeviceBuffer.zeros(device, 'u32', 1)
  module.kernel('run', ['ptr', 'u32']).launch({ grid: 1, block: 1 }, out, 3)
  device.primaryContext.synchronizeSync()
  return out.toArraySync()[0] as number
}

function linked(...inputs: readonly string[]): Uint8Array {
  using linker = Linker.create(device)
  for (const input of inputs) linker.add(input)
  return linker.completeSync()
}

test('linked kernels call functions and use variables of other inputs; static symbols stay separate', async () => {
  // 3 × 100, plus 2, plus 1000.
  expect(result(linked(kernels, functions))).toBe(1302)
  expect(result(linked(functions, kernels))).toBe(1302)
  using linker = Linker.create(device, { optimizationLevel: 3, target: 90 })
  const image = await linker
    .add(new TextEncoder().encode(kernels), { name: 'kernels', kind: 'ptx' })
    .add(functions)
    .complete()
  expect(linker.log).toBe('')
  linker.dispose()
  expect(result(image)).toBe(1302)
  expect(() => linker.log).toThrow(DisposedError)
})

test('a linked image can be linked again', () => {
  using linker = Linker.create(device)
  expect(result(linker.add(linked(functions)).add(kernels).completeSync())).toBe(1302)
})

test('the linker detects the type of a file by its extension', async () => {
  const folder = mkdtempSync(join(scratchFolder(), 'linker-'))
  const [first, second] = [join(folder, 'kernels.ptx'), join(folder, 'functions')]
  writeFileSync(first, kernels)
  writeFileSync(second, functions)
  using linker = Linker.create(device)
  linker.addFile(first).addFile(pathToFileURL(second), { kind: 'ptx' })
  expect(() => linker.addFile(second)).toThrow(/^Linker.addFile: kind must be /)
  expect(() => linker.addFile(join(folder, 'none.ptx'))).toThrow(
    expect.objectContaining({ code: 'CUDA_ERROR_FILE_NOT_FOUND', api: 'cuLinkAddFile' }),
  )
  expect(inspect(linker)).toBe('Linker { device: 0, inputs: 2 }')
  expect(() => linker.add('.version 8.0\n.target sm_80\n.address_size 64\nnonsense')).toThrow(/input 3/)
  expect(result(await linker.complete())).toBe(1302)
})

describe('several definitions of one symbol', () => {
  test('if one is strong: the strong one wins', () => {
    expect(result(linked(kernels, bias, weigh('.weak', 5), weigh('.visible', 7)))).toBe(23)
    expect(result(linked(kernels, bias, weigh('.visible', 7), weigh('.weak', 5)))).toBe(23)
  })

  test('if all are weak: the first wins', () => {
    expect(result(linked(kernels, bias, weigh('.weak', 5), weigh('.weak', 7)))).toBe(17)
  })

  test('if two are strong: linking fails', () => {
    expect(() => linked(kernels, bias, weigh('.visible', 5), weigh('.visible', 7))).toThrow(
      /Multiple definition of 'weigh' in 'input 4', first defined in 'input 3'/,
    )
  })
})

describe('the linker refuses', () => {
  test('undefined symbols, and returns the log', async () => {
    using linker = Linker.create(device)
    linker.add(kernels)
    expect(() => linker.completeSync()).toThrow(StatusError)
    await expect(linker.complete()).rejects.toThrow(/weigh/)
    expect(() => linked(kernels, weigh('.visible', 1))).toThrow(/'bias' is not defined/)
  })

  test('malformed PTX, with its name and line', () => {
    using linker = Linker.create(device)
    expect(() => linker.add(`${head()}.visible .entry run( {`, { name: 'broken.ptx' })).toThrow(
      /cuLinkAddData[\s\S]*broken\.ptx[\s\S]*line 4/,
    )
    // The linker continues with the remaining inputs.
    expect(result(linker.add(kernels).add(functions).completeSync())).toBe(1302)
  })

  test('to link without inputs', () => {
    using linker = Linker.create(device)
    expect(() => linker.completeSync()).toThrow(/nothing to link/)
  })

  test.each([
    [{ target: 10 }, 'Linker.create: target must be an integer from 50 to 999, not 10'],
    [{ target: '90' }, 'Linker.create: target must be '],
    [{ optimizationLevel: -1 }, 'Linker.create: optimizationLevel must be '],
    [{ targets: 90 }, 'Linker.create: options must have only the keys '],
    [[], 'Linker.create: options must be a plain object '],
  ])('the options %o', (options, message) => {
    expect(() => Linker.create(device, options as never)).toThrow(message)
  })

  test.each([
    ['', {}, 'Linker.add: image must not be empty'],
    [5, {}, 'Linker.add: image must be PTX text or a Uint8Array, not 5'],
    [Uint8Array.of(1, 0, 2), {}, 'Linker.add: image must be PTX, a cubin or a fat binary, not other bytes'],
    [kernels, { kind: 'elf' }, 'Linker.add: kind must be '],
    [kernels, { name: 5 }, 'Linker.add: name must be '],
    [kernels, { names: 'a' }, 'Linker.add: options must have only the keys kind, name, not '],
  ])('the input %#', (image, input, message) => {
    using linker = Linker.create(device)
    expect(() => linker.add(image as never, input as never)).toThrow(message)
    expect(() => linker.addFile(5 as never)).toThrow(/^Linker.addFile: path must be /)
  })

  test('a truncated image', () => {
    using linker = Linker.create(device)
    const elf = new Uint8Array(32)
    elf.set([0x7f, 0x45, 0x4c, 0x46])
    expect(() => linker.add(elf)).toThrow(/^Linker.add: image must be complete, not cut off/)
  })

  test('use after dispose(); the linked image stays valid', async () => {
    const linker = Linker.create(device)
    const image = linker.add(kernels).add(functions).complete()
    linker.dispose()
    expect(result(await image)).toBe(1302)
    expect(() => linker.handle).toThrow(DisposedError)
    expect(() => linker.add(kernels)).toThrow(DisposedError)
    await expect(linker.complete()).rejects.toThrow(DisposedError)
  })
})
