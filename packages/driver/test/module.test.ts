import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { driver } from '@shoal/cuda-sys'
import { bindBigCall } from '@shoal/ffi/calls'
import { beforeAll, describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { compile, shimEnvironment } from './support/shim.js'

const shim = compile('kernelShim')
Object.assign(process.env, shimEnvironment(shim), { SHOAL_SIM_DEVICES: '2' })
const { Device, DisposedError, Module, ShoalError, StatusError, SystemError } = await import('@shoal/driver')

const ptx = '.version 8.0'
let device: import('@shoal/driver').Device

beforeAll(() => {
  device = Device.get(0)
})

/** Returns the number of modules in the driver. */
function loadedModules(): bigint {
  return bindBigCall(driver.rawSymbol('shimModules') as bigint, 0, 'u64', 'shimModules')()
}

function writeImage(name: string, content: string | Uint8Array): string {
  const path = join(scratchFolder(), name)
  writeFileSync(path, content)
  return path
}

describe('loading a Module', () => {
  test('load() returns a promise, loadSync() the module, and dispose() unloads it', async () => {
    const before = loadedModules()
    const first = await Module.load(device, ptx)
    const second = Module.loadSync(device, ptx)
    expect([first, second].every((module) => module instanceof Module)).toBe(true)
    expect(loadedModules()).toBe(before + 2n)
    first.dispose()
    first.dispose()
    second.disposeSync()
    expect(loadedModules()).toBe(before)
    expect(first.disposed).toBe(true)
    expect(() => first.handle).toThrow(DisposedError)
  })

  test('load() does not block the event loop; loadSync() does', async () => {
    let turns = 0
    const timer = setInterval(() => (turns += 1), 1)
    using slow = await Module.load(device, 'slow')
    expect(turns).toBeGreaterThan(3)
    turns = 0
    using blocked = Module.loadSync(device, 'slow')
    expect(turns).toBe(0)
    clearInterval(timer)
    expect(slow.context).toBe(blocked.context)
  })

  test('a pending load keeps its context: a reset and the disposal of the device wait for it', async () => {
    const own = Device.get(1)
    const order: string[] = []
    const loading = Module.load(own, 'slow').then((module) => {
      order.push('loaded')
      return module
    })
    const reset = own.reset().then(() => order.push('reset'))
    const module = await loading
    await reset
    expect(order).toEqual(['loaded', 'reset'])
    expect(() => module.handle).toThrow(DisposedError)
    module.dispose()
    const again = Module.load(own, 'slow')
    own.dispose()
    expect(own.primaryContextState.active).toBe(true)
    await expect(again).resolves.toBeInstanceOf(Module)
    ;(await again).disposeSync()
    expect(own.primaryContextState.active).toBe(false)
  })

  test('accepts a device or a context', async () => {
    using ofContext = await Module.load(device.primaryContext, ptx)
    using ofDevice = Module.loadSync(device, ptx)
    expect(ofContext.context).toBe(ofDevice.context)
    expect(ofContext.device).toBe(device)
    await expect(Module.load(0 as never, ptx)).rejects.toThrow(TypeError)
    expect(() => Module.loadSync({} as never, ptx)).toThrow(TypeError)
  })

  test('puts the log of the compiler into the error, or on the module', async () => {
    const refusal = /CUDA_ERROR_INVALID_PTX \(218\)[\s\S]*this is wrong/
    expect(() => Module.loadSync(device, 'wrong')).toThrow(refusal)
    await expect(Module.load(device, 'wrong')).rejects.toThrow(refusal)
    using loaded = Module.loadSync(device, 'right', { maxRegisters: 32, optimizationLevel: 2, lineInfo: true })
    expect(loaded.compilerLog).toBe('compiled with 7 options')
    using later = await Module.load(device, new TextEncoder().encode('right'), { debugInfo: true, verbose: true })
    expect(later.compilerLog).toBe('compiled with 6 options')
  })
})

describe('Module.loadFile', () => {
  test('accepts a path or a file URL', async () => {
    const path = writeImage('right.ptx', 'right')
    using byPath = await Module.loadFile(device, path)
    using byUrl = await Module.loadFile(device, pathToFileURL(path), { lineInfo: true })
    expect(byPath.compilerLog).toBe('compiled with 4 options')
    expect(byUrl.compilerLog).toBe('compiled with 5 options')
  })

  test("throws a SystemError with the system's code for an unreadable file", async () => {
    for (const [path, code] of [
      ['/nowhere/axpy.ptx', 'ENOENT'],
      [scratchFolder(), 'EISDIR'],
      [pathToFileURL('/nowhere/axpy.ptx'), 'ENOENT'],
    ] as const) {
      const error = await Module.loadFile(device, path).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(SystemError)
      expect(error).toBeInstanceOf(ShoalError)
      expect(error).toMatchObject({ code, api: 'Module.loadFile', parameter: 'path', value: String(path) })
      expect((error as Error).message).toMatch(/^Module\.loadFile: the system refused path '.*': /)
      expect((error as Error).cause).toMatchObject({ code })
    }
  })

  test.each([5, null, undefined, '', 'a\0b', new URL('https://example.com/a.ptx'), Buffer.from('/tmp')])(
    'refuses %o as a path',
    async (path) => {
      await expect(Module.loadFile(device, path as string)).rejects.toThrow(/^Module\.loadFile: path must be /)
    },
  )

  test('names loadFile in its errors', async () => {
    await expect(Module.loadFile(device, writeImage('empty.ptx', ''))).rejects.toThrow(
      new RangeError('Module.loadFile: image must not be empty'),
    )
    const options = { level: 5 } as object
    await expect(Module.loadFile(device, writeImage('good.ptx', ptx), options)).rejects.toThrow(
      /^Module\.loadFile: options must have only the keys .*, not 'level'; did you mean '\w+'\?$/,
    )
  })
})

describe('loading malformed images', () => {
  const elf = new Uint8Array(64)
  elf.set([0x7f, 0x45, 0x4c, 0x46])
  new DataView(elf.buffer).setBigUint64(0x28, 1000n, true)
  new DataView(elf.buffer).setUint32(0x3a, (3 << 16) | 64, true)
  const fatBinary = Uint8Array.of(0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 255, 255, 0, 0, 0, 0, 0, 0)

  test.each([
    [
      'a cubin cut off in its section table',
      elf,
      RangeError,
      'its section table would end at byte 1192, and there are 64',
    ],
    ['a cubin cut off in its header', elf.subarray(0, 63), RangeError, 'its ELF header would end at byte 64'],
    ['a fat binary cut off', fatBinary, RangeError, 'its contents would end at byte 65551, and there are 16'],
    ['a fat binary cut off in its header', fatBinary.subarray(0, 10), RangeError, 'its header would end at byte 16'],
    ['no bytes', new Uint8Array(0), RangeError, 'image must not be empty'],
    ['empty text', ' \n', RangeError, 'image must not be empty'],
    ['text with NUL', `${ptx}\0`, TypeError, 'image must be PTX without NUL characters'],
    ['other bytes', Uint8Array.of(1, 0, 2), TypeError, 'image must be PTX, a cubin or a fat binary'],
    ['a number', 5, TypeError, 'image must be PTX text or a Uint8Array, not 5'],
    ['an ArrayBuffer', new ArrayBuffer(8), TypeError, 'image must be PTX text or a Uint8Array'],
  ])('%s', async (_, image, kind, message) => {
    const load = () => Module.loadSync(device, image as string)
    expect(load).toThrow(kind)
    expect(load).toThrow(message)
    expect(load).toThrow(/^Module\.loadSync: image must /)
    await expect(Module.load(device, image as string)).rejects.toThrow(/^Module\.load: image must /)
  })
})

describe('an image is as long as its header states', () => {
  /**
   * Returns an ELF file with a table of three entries of 64 bytes after its header. `at` is the header's field with the
   * table's offset.
   */
  function elf(at: number, size: number, byteLength: number, first = 64n): Uint8Array {
    const image = new Uint8Array(byteLength)
    image.set([0x7f, 0x45, 0x4c, 0x46])
    const view = new DataView(image.buffer)
    view.setBigUint64(at, first, true)
    view.setUint16(size, 64, true)
    view.setUint16(size + 2, 3, true)
    return image
  }
  const [sections, programs] = [
    [0x28, 0x3a],
    [0x20, 0x36],
  ] as const
  const fatBinary = (byteLength: number): Uint8Array => {
    const image = new Uint8Array(byteLength)
    image.set([0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 84])
    return image
  }

  test.each([
    ['a section table', (byteLength: number) => elf(...sections, byteLength), 256, 'its section table'],
    ['program headers', (byteLength: number) => elf(...programs, byteLength), 256, 'its program headers'],
    ['contents', fatBinary, 100, 'its contents'],
  ])('with %s is read to its last byte and no further', (_, image, end, part) => {
    // The text of the driver's own error does not matter.
    const refusal = (byteLength: number): string => {
      try {
        Module.loadSync(device, image(byteLength)).dispose()
        return ''
      } catch (error) {
        return error instanceof RangeError ? error.message : ''
      }
    }
    expect([refusal(end), refusal(end + 1)]).toEqual(['', ''])
    expect(refusal(end - 1)).toBe(
      `Module.loadSync: image must be complete, not cut off: ${part} would end at byte ${end}, and there are ${end - 1}`,
    )
  })

  test('an empty table is ignored, even if its offset is out of range', () => {
    const image = elf(...sections, 64, 10_000n)
    new DataView(image.buffer).setUint16(0x3c, 0, true)
    expect(() => Module.loadSync(device, image).dispose()).not.toThrow(RangeError)
  })

  test('fewer than four bytes are PTX, and PTX has a NUL only at its end', () => {
    expect(() => Module.loadSync(device, Uint8Array.of(0x7f, 0x45, 0x4c))).not.toThrow(TypeError)
    expect(() => Module.loadSync(device, Uint8Array.of(0x7f, 0, 0x4c))).toThrow(TypeError)
    const bytes = new TextEncoder().encode(`${ptx}\0`)
    Module.loadSync(device, bytes).dispose()
    expect(() => Module.loadSync(device, Uint8Array.of(...bytes, 0))).toThrow(/image must be PTX, a cubin or a fat/)
  })
})

describe('options of Module.load', () => {
  test.each([
    [{ maxRegisters: 0 }, RangeError, 'maxRegisters must be an integer from 1 to 255, not 0'],
    [{ maxRegisters: Number.NaN }, TypeError, 'maxRegisters must be an integer from 1 to 255, not NaN'],
    [{ optimizationLevel: 5 }, RangeError, 'optimizationLevel must be an integer from 0 to 4, not 5'],
    [{ debugInfo: 1 }, TypeError, 'debugInfo must be a boolean, not 1'],
    [{ lineInfo: null }, TypeError, 'lineInfo must be a boolean, not null'],
    [{ verbose: 'yes' }, TypeError, "verbose must be a boolean, not 'yes'"],
    [{ registers: 32 }, TypeError, "not 'registers'"],
    [new Map(), TypeError, 'options must be a plain object'],
    [null, TypeError, 'options must be a plain object'],
  ])('refuse %o', async (options, kind, message) => {
    const before = loadedModules()
    const load = () => Module.loadSync(device, ptx, options as object)
    expect(load).toThrow(kind)
    expect(load).toThrow(message)
    expect(load).toThrow(/^Module\.loadSync: /)
    await expect(Module.load(device, ptx, options as object)).rejects.toThrow(/^Module\.load: /)
    expect(loadedModules()).toBe(before)
  })
})

describe('Module.kernel', () => {
  test('a signature is checked against the image', () => {
    using module = Module.loadSync(device, ptx)
    expect(() => module.kernel('args_4_8', ['f32'])).toThrow(
      new TypeError('Module.kernel: signature must name all parameters of args_4_8, which has 2, not 1'),
    )
    expect(() => module.kernel('args_4', ['f32', 'f32'])).toThrow(
      'signature must name all parameters of args_4, which has 1, not 2',
    )
    expect(() => module.kernel('args_4', ['f64'])).toThrow(
      new TypeError('Module.kernel: signature[0] must have 4 bytes, as in args_4, not the 8 of f64'),
    )
  })

  test.each(['f32', null, undefined, { 0: 'f32', length: 1 }])('%o is refused as a signature', (signature) => {
    using module = Module.loadSync(device, ptx)
    expect(() => module.kernel('args_4', signature as never)).toThrow(/^Module\.kernel: signature must be an array/)
  })

  test.each(['int', 5, null, undefined, {}, ['f32', 2], { kind: 'struct' }])(
    '%o is refused as a parameter type',
    (parameter) => {
      using module = Module.loadSync(device, ptx)
      expect(() => module.kernel('args_4_4', ['f32', parameter as never])).toThrow(
        /^Module\.kernel: signature\[1\] must be a dtype, 'ptr', 'texture', 'surface', 'tensorMap' or a type of defineStruct, defineArray or defineTuple, not /,
      )
    },
  )

  test('refuses wrong names, and names a kernel that does not exist', () => {
    using module = Module.loadSync(device, ptx)
    expect(() => module.kernel('args_4\0', ['f32'])).toThrow(TypeError)
    expect(() => module.kernel('', [])).toThrow(RangeError)
    expect(() => module.kernel(5 as unknown as string, [])).toThrow('Module.kernel: name must be a string, not 5')
    expect(() => module.kernel('missing', [])).toThrow(/cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND.*\n?.*missing/)
  })

  test('is refused after dispose()', () => {
    const module = Module.loadSync(device, ptx)
    module.dispose()
    expect(() => module.kernel('args_4', ['i32'])).toThrow(DisposedError)
  })
})

describe('Module.global', () => {
  test('variables of the image are buffers that end with the module', () => {
    const module = Module.loadSync(device, ptx)
    const variable = module.global('variable', 'u32')
    expect(variable.length).toBe(4)
    expect(() => module.global('variable', 'complex128').length).not.toThrow()
    variable.dispose()
    const again = module.global('variable')
    expect([again.dtype, again.length]).toEqual(['u8', 16])
    module.dispose()
    expect(() => again.address).toThrow(DisposedError)
    expect(() => module.global('variable')).toThrow(DisposedError)
  })

  test('refuses wrong names and dtypes, and names a variable that does not exist', () => {
    using module = Module.loadSync(device, ptx)
    expect(() => module.global('missing')).toThrow(StatusError)
    expect(() => module.global('missing')).toThrow(/cuModuleGetGlobal failed: CUDA_ERROR_NOT_FOUND.*\n?.*missing/)
    expect(() => module.global('')).toThrow('Module.global: name must be a string that is not empty')
    expect(() => module.global('variable', 'int' as 'i32')).toThrow(TypeError)
    expect(() => module.global('odd', 'u32')).toThrow(
      new RangeError('Module.global: dtype must fit odd, whose 6 bytes are no whole number of u32'),
    )
  })
})

test('a Module is printed in one line, also after dispose()', () => {
  const module = Module.loadSync(device, ptx)
  expect(inspect(module)).toBe('Module { device: 0 }')
  expect(String(module)).toBe('[object Module]')
  module.dispose()
  expect(inspect(module)).toBe('Module { device: 0, disposed: true }')
})
