import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { corpusFile } from './support/corpus.js'

// SHOAL_SIM_CHECK=1, with kernels that have one fault each: packages/sim/test/ptx/wrong.cu, compiled with -lineinfo.
Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '32', SHOAL_SIM_CHECK: '1' })
const { Device, DeviceBuffer, Module } = await import('@shoal/driver')

const source = readFileSync(corpusFile('wrong.cu'), 'utf8').split('\n')
/** Returns the number of the first line after the kernel's start that starts with the text. */
function lineOf(kernel: string, text: string): number {
  const start = source.findIndex((line) => line.includes(`void ${kernel}(`))
  return source.findIndex((line, index) => index >= start && line.includes(text)) + 1
}

let nextDevice = 0

/** Runs a kernel on a separate device, whose context may be lost. Returns the error's report. */
async function reportOf(name: string, block: number, options: { n?: number; input?: boolean; length?: number } = {}) {
  const device = Device.get(nextDevice++)
  const module = Module.loadSync(device, readFileSync(corpusFile('wrong.ptx'), 'utf8'))
  const out = DeviceBuffer.from(device, new Int32Array(options.length ?? 256))
  const input =
    name === 'unwrittenGlobal' ? DeviceBuffer.allocate(device, 'i32', 256) : DeviceBuffer.zeros(device, 'i32', 256)
  const pointers = options.input === true ? [input, out] : [out]
  const signature = [...pointers.map(() => 'ptr' as const), ...(options.n === undefined ? [] : ['i32' as const])]
  const args = [...pointers, ...(options.n === undefined ? [] : [options.n])]
  module.kernel(name, signature).launch({ grid: 2, block }, ...(args as never[]))
  const error = await device.synchronize().then(
    () => undefined,
    (reason: unknown) => reason as { code: string; message: string },
  )
  return { code: error?.code, text: error?.message ?? '' }
}

describe('the kernel check report', () => {
  test.each([
    ['outOfRange', 32, { n: 45, length: 45 }, 'data[i] = i', 'thread (13, 0, 0)', /an access of 4 bytes at 0x/],
    ['misaligned', 64, {}, 'misaligned(', 'thread (37, 0, 0)', /a misaligned access of 4 bytes/],
    [
      'unwrittenGlobal',
      32,
      { input: true },
      'unwrittenGlobal(',
      'thread (0, 0, 0)',
      /global memory at 0x\w+, which nobody wrote/,
    ],
    ['unwrittenHeap', 4, {}, 'out[threadIdx.x]', 'thread (0, 0, 0)', /global memory at 0x\w+, which nobody wrote/],
    ['unwrittenShared', 64, {}, 'out[threadIdx.x]', 'thread (54, 0, 0)', /shared memory at 36, which nobody wrote/],
    [
      'readTooEarly',
      64,
      { input: true },
      'v[threadIdx.x] = in',
      'thread (',
      /a race: byte \d+ of shared memory is written here and was read by thread/,
    ],
    [
      'writeTooEarly',
      64,
      {},
      'const int other',
      'thread (',
      /is read here and was written by thread \(\d+, 0, 0\), PTX line \d+ \(wrong\.cu:\d+\), with no/,
    ],
    [
      'bothWrite',
      64,
      {},
      'v = threadIdx.x',
      'thread (32, 0, 0)',
      /is written here and was written by thread \(0, 0, 0\)/,
    ],
    [
      'noSyncwarp',
      32,
      {},
      'out[threadIdx.x]',
      'thread (0, 0, 0)',
      /is read here and was written by thread \(1, 0, 0\)/,
    ],
    ['atomicAndNot', 32, {}, 'out[threadIdx.x] = sum', 'thread (0, 0, 0)', /is read here and was written by thread/],
    [
      'flagWithoutFence',
      64,
      {},
      'out[0] = data',
      'thread (0, 0, 0)',
      /is read here and was written by thread \(32, 0, 0\)/,
    ],
    ['halfABarrier', 96, {}, 'out[threadIdx.x]', 'thread (', /a race: byte \d+/],
    [
      'leftBefore',
      64,
      { n: 40 },
      '__syncthreads()',
      'thread (',
      /a barrier that not all threads reach: thread \(40, 0, 0\) ended before it/,
    ],
    [
      'barrierInBranch',
      32,
      {},
      '__syncthreads()',
      'thread (',
      /a barrier that not all threads reach: thread .* waits at another one/,
    ],
    [
      'differentBarriers',
      64,
      {},
      'bar.sync',
      'thread (',
      /a barrier that not all threads reach: all threads of the block wait, thread .* elsewhere/,
    ],
  ] as const)('describes %s', async (name, block, options, line, thread, what) => {
    const { code, text } = await reportOf(name, block, options)
    const codes: Record<string, string> = { outOfRange: 'ILLEGAL_ADDRESS', misaligned: 'MISALIGNED_ADDRESS' }
    expect(code).toBe(`CUDA_ERROR_${codes[name] ?? 'LAUNCH_FAILED'}`)
    expect(text).toMatch(what)
    expect(text).toContain(`kernel ${name}, block (`)
    expect(text).toContain(thread)
    const lines =
      name === 'barrierInBranch' || name === 'differentBarriers' ? /wrong\.cu:\d+/ : `wrong.cu:${lineOf(name, line)})`
    if (typeof lines === 'string') expect(text).toContain(lines)
    else expect(text).toMatch(lines)
  })
})

describe('kernels without a fault', () => {
  let stderr = ''
  let stdout = ''
  beforeAll(() => {
    const run = fileURLToPath(new URL('../../../tooling/kernels/dist/run.js', import.meta.url))
    const ended = spawnSync(process.execPath, [run], { encoding: 'utf8' })
    stderr = ended.stderr
    stdout = ended.stdout
  })

  test('threads that write the same value to one address are not reported', async () => {
    expect(await reportOf('allWriteOne', 64)).toEqual({ code: undefined, text: '' })
  })

  test('kernels of the corpus are not reported', () => {
    expect(stderr.split('\n').filter((line) => line.startsWith('shoal: kernel'))).toEqual([])
    expect(stdout).toMatch(/^\d{3} right, 0 wrong/m)
  })
})

test('without the check, the error of a bad access names the variable that shows the place', () => {
  const program = `
    import { Device, Module } from '@shoal/driver'
    import { readFileSync } from 'node:fs'
    const device = Device.get(0)
    const module = Module.loadSync(device, readFileSync(process.argv[1], 'utf8'))
    module.kernel('misaligned', ['u64']).launch({ grid: 1, block: 1 }, 64n)
    await device.synchronize().catch(({ message }) => console.log(message))
    process.exit(0)`
  const { SHOAL_SIM_CHECK: _, ...env } = process.env
  const words = ['--input-type=module', '--eval', program, corpusFile('wrong.ptx')]
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const { stdout } = spawnSync(process.execPath, words, { encoding: 'utf8', cwd, env })
  expect(stdout).toContain('illegal memory access by the device; SHOAL_SIM_CHECK=1 reports the thread and the line')
})
