import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { libraries, libraryFolder } from '@shoal/sim'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../../tooling/config/src/scratchFolder.js'

const folder = fileURLToPath(new URL('..', import.meta.url))

/** Runs the command of the example's page. */
function run(environment: NodeJS.ProcessEnv = {}) {
  const { SHOAL_CUDA_LIBRARY: _, ...others } = process.env
  const env = { ...others, SHOAL_DEVICE: 'sim', ...environment }
  return spawnSync(process.execPath, ['dist/main.js'], { cwd: folder, env, encoding: 'utf8' })
}

describe('the addon of the example program', () => {
  test('uses memory and stream made by Shoal, on the same device', () => {
    const links = join(scratchFolder(), 'software-device')
    mkdirSync(links)
    symlinkSync(join(libraryFolder(), libraries.cuda), join(links, 'libcuda.so.1'))
    const { stdout, stderr, status } = run({ LD_LIBRARY_PATH: links })
    const [, shown] = /```text\n([\s\S]*?)```/.exec(readFileSync(join(folder, 'README.md'), 'utf8')) ?? []
    expect(stderr.replace(/^shoal: software device in use.*\n/, '')).toBe('')
    expect({ stdout, status }).toEqual({ stdout: shown, status: 0 })
  })

  test('finds no driver if the software device is not linked', () => {
    const { stderr, status } = run({ LD_LIBRARY_PATH: '' })
    expect(stderr).toContain('no libcuda.so.1 in sight of the loader')
    expect(status).toBe(1)
  })
})

describe('shoal_memory.h', () => {
  const name = `../prebuilds/${process.platform}-${process.arch}/fill.node`
  const fill = createRequire(import.meta.url)(name) as (...values: unknown[]) => void
  const memory = (answer: object) => ({ [Symbol.for('cuda.memory')]: answer })
  const answer = { version: 0, address: 4096n, byteLength: 16, deviceOrdinal: 0, context: 0n, dtype: 'u8', length: 16 }

  test.each([
    ['a number', 7],
    ['nothing', undefined],
    ['an invalid object', {}],
    ['an answer that is no object', memory(7 as never)],
    ['a later version', memory({ ...answer, version: 2 })],
    ['an address that is a number', memory({ ...answer, address: 4096 })],
    ['an address beyond 64 bits', memory({ ...answer, address: 1n << 64n })],
    ['a negative address', memory({ ...answer, address: -1n })],
    ['a length that is a fraction', memory({ ...answer, byteLength: 1.5 })],
    ['an invalid length', memory({ ...answer, byteLength: Number.NaN })],
    ['a negative length', memory({ ...answer, byteLength: -1 })],
    ['a device that there cannot be', memory({ ...answer, deviceOrdinal: -2 })],
    ['no context', memory({ ...answer, context: undefined })],
  ])('refuses %s', (_, value) => {
    expect(() => fill(value, 0)).toThrow(
      new TypeError("memory must be an object with [Symbol.for('cuda.memory')], of version 0 or 1"),
    )
  })

  const layout = 'memory must have a dtype, a shape and strides that stay within its bytes'
  const gaps = 'memory must be contiguous, not with strides that skip elements: copy it first'
  const stream = 'memory.stream must be a CUstream as a bigint, 1n or 2n for a default stream, or null'

  test.each([
    ['rows with gaps', { shape: [2, 4], strides: [8, 1] }, gaps],
    ['columns', { shape: [4, 4], strides: [1, 4] }, gaps],
    ['gaps in an answer of version 0', { version: 0, shape: [2, 4], strides: [8, 1] }, gaps],
    ['more elements than bytes', { shape: [17] }, layout],
    ['strides that leave the memory', { shape: [2, 4], strides: [16, 1] }, layout],
    ['another number of elements', { shape: [8], length: 16 }, layout],
    ['strides without a shape', { strides: [1] }, layout],
    ['a shape without a dtype', { dtype: undefined, shape: [16] }, layout],
    ['a shape of fractions', { shape: [1.5] }, layout],
    ['an invalid shape', { shape: 16 }, layout],
    ['a stream that could be two', { stream: 0n }, stream],
    ['an invalid stream', { stream: 7 }, stream],
  ])('refuses %s', (_, changed, message) => {
    const value = memory({ ...answer, version: 1, length: undefined, ...changed })
    expect(() => fill(value, 0)).toThrow(new TypeError(message))
  })

  test('accepts contiguous memory', () => {
    for (const taken of [
      { shape: [4, 4] },
      { shape: [4, 4], strides: [4, 1] },
      { shape: [16, 1], strides: [1, 9] },
      { shape: [0, 4], strides: [9, 9] },
    ]) {
      const value = memory({ ...answer, version: 1, length: undefined, stream: null, ...taken })
      expect(() => fill(value, 256)).toThrow('byte must be an integer from 0 to 255')
    }
  })

  test('refuses other values than a stream', () => {
    for (const stream of [7, {}, { [Symbol.for('cuda.stream')]: { version: 0, handle: 1 } }]) {
      expect(() => fill(memory(answer), 0, stream)).toThrow("stream must be an object with [Symbol.for('cuda.stream')]")
    }
  })

  test('rethrows errors of getters', () => {
    const gone = {
      get [Symbol.for('cuda.memory')](): never {
        throw new RangeError('gone')
      },
    }
    expect(() => fill(gone, 0)).toThrow(new RangeError('gone'))
  })

  test('reads all properties before any call', () => {
    expect(() => fill(memory(answer), 256)).toThrow('byte must be an integer from 0 to 255')
  })
})
