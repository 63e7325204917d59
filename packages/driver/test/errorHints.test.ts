import { beforeAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, elapsedMs, Module, PinnedBuffer } = await import('@shoal/driver')
const { Library } = await import('@shoal/driver/library')

const [device, second] = [Device.get(0), Device.get(1)]

describe('elapsedMs', () => {
  const timing = { timing: true }
  const stream = device.createStream()
  const done = device.createEvent(timing)
  beforeAll(async () => {
    await stream.record(done).synchronize()
  })

  test('names an event that was never recorded', () => {
    const never = device.createEvent(timing)
    expect(() => elapsedMs(done, never)).toThrow('elapsedMs: end was never recorded; call stream.record(end) first')
    expect(() => elapsedMs(never, done)).toThrow('elapsedMs: start was never recorded')
    expect(() => elapsedMs(never, done)).toThrow(expect.objectContaining({ code: 'CUDA_ERROR_INVALID_HANDLE' }))
  })

  test('names an event that has not completed', async () => {
    const late = device.createEvent(timing)
    const word = PinnedBuffer.allocate(device, 'u32', 1)
    word.array[0] = 0
    stream.waitValue(word, 1)
    stream.record(late)
    try {
      expect(() => elapsedMs(done, late)).toThrow('elapsedMs: end is not complete; await end.synchronize() first')
    } finally {
      word.array[0] = 1
    }
    await late.synchronize()
    expect(elapsedMs(done, late)).toBeGreaterThanOrEqual(0)
  })

  test('refuses events of two contexts', async () => {
    const there = second.createEvent(timing)
    await second.createStream().record(there).synchronize()
    const message = 'elapsedMs: end must be an Event of the context of start, on device 0, not on device 1'
    expect(() => elapsedMs(done, there)).toThrow(new TypeError(message))
  })
})

const image = (names: readonly string[]): string =>
  `.version 8.0\n.target sm_80\n.address_size 64\n${names.map((name) => `.visible .entry ${name}() { ret; }`).join('\n')}\n`

describe.each([
  ['Module', (text: string) => Module.loadSync(device, text)],
  ['Library', (text: string) => Library.loadSync(device, text)],
] as const)('%s.kernel', (_, load) => {
  test('lists the kernels of the image if the name is unknown', () => {
    using code = load(image(['first', 'second']))
    const error = expect.objectContaining({ code: 'CUDA_ERROR_NOT_FOUND', message: expect.any(String) })
    expect(() => code.kernel('third', [])).toThrow(error)
    expect(() => code.kernel('third', [])).toThrow(
      /kernel: third\nThe image has (first, second|second, first)\..*\n.*extern "C"/,
    )
  })

  test('suggests the mangled name of the kernel', () => {
    using code = load(image(['_Z4axpyfPKfPfi']))
    expect(() => code.kernel('axpy', [])).toThrow(`'_Z4axpyfPKfPfi' is its mangled name; declare it extern "C"`)
  })

  test('lists only twelve of many kernels', () => {
    using code = load(image(Array.from({ length: 100 }, (_, index) => `kernel${index}`)))
    expect(() => code.kernel('third', [])).toThrow(/(kernel\d+, ){11}kernel\d+ and 88 more\./)
  })
})

test('the error for a cooperative launch that is too large reports how many blocks fit', () => {
  using module = Module.loadSync(device, image(['nothing']))
  const kernel = module.kernel('nothing', []).with({ cooperative: true })
  const most = kernel.maxActiveBlocks(256) * device.attribute('MULTIPROCESSOR_COUNT')
  expect(() => kernel.launch({ grid: most + 1, block: 256 })).toThrow(
    new RegExp(`must have at most ${most} blocks of 256 threads here \\(.*\\), not ${most + 1}\\.`),
  )
  kernel.launch({ grid: most, block: 256 })
})

const wrongImages: readonly [string, string | Uint8Array, RegExp][] = [
  [
    'PTX in UTF-16',
    Buffer.from(`\uFEFF${image(['a'])}`, 'utf16le'),
    /not text in UTF-16 \(it begins with its byte order mark\); save it as UTF-8$/,
  ],
  [
    'a byte order mark',
    `\uFEFF${image(['a'])}`,
    /not text that begins with a byte order mark \(U\+FEFF\); cut that off$/,
  ],
  [
    'source',
    'extern "C" __global__ void a() {}',
    /not CUDA C\+\+ source; compile\(\) of '@shoal\/driver\/compile' compiles it$/,
  ],
  ['a path', './build/kernels.ptx', /not a path; (Module|Library)\.loadFile reads the file '\.\/build\/kernels\.ptx'$/],
]

test.each(wrongImages)('the error for %s in place of an image suggests a fix', (_, text, message) => {
  for (const given of typeof text === 'string' ? [text, new TextEncoder().encode(text)] : [text]) {
    expect(() => Module.loadSync(device, given)).toThrow(message)
    expect(() => Library.loadSync(device, given)).toThrow(message)
  }
})

test('the error for an unknown option suggests the most similar option', () => {
  expect(() => device.createStream({ nonblocking: true } as never)).toThrow(
    /not 'nonblocking'; did you mean 'nonBlocking'\?$/,
  )
  expect(() => device.createStream({ prio: 1 } as never)).toThrow(/not 'prio'; did you mean 'priority'\?$/)
  expect(() => device.createStream({ colour: 1 } as never)).toThrow(/not 'colour'$/)
})
