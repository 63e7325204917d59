import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emitUncheckedCalls } from '../src/emit/uncheckedCalls.js'
import { type UncheckedCall, uncheckedCalls } from '../src/facts/uncheckedCalls.js'
import { readSpec, root } from './environment.js'

const specs = uncheckedCalls.map(({ library }) => readSpec(library))
const packages = join(root, 'packages')

test.each(uncheckedCalls)('packages/$path equals the output of the committed spec', ({ path }) => {
  expect(readFileSync(join(packages, path), 'utf8')).toBe(emitUncheckedCalls(specs).get(path))
})

test.each(uncheckedCalls)('the package calls each function of $path', ({ path, functions }) => {
  const folder = join(packages, path.slice(0, path.indexOf('/')), 'src')
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.gen.ts'))
    .map((file) => readFileSync(join(folder, file), 'utf8'))
  const words = new Set(sources.join('\n').match(/\w+/g))
  for (const { name, as = `${name}Unchecked` } of functions) expect(words).toContain(as)
})

/** The driver's generated function, from its signature on. */
function emitted(call: UncheckedCall): string[] {
  const files = [{ library: 'driver', path: 'file.gen.ts', functions: [call] }] as const
  const text = emitUncheckedCalls(specs, files).get('file.gen.ts') as string
  return text
    .slice(text.indexOf('export'))
    .split('\n')
    .map((line) => line.trim())
}

describe('an unchecked function', () => {
  test('passes addresses as halves and sizes as numbers, in the slots of the spec', () => {
    expect(emitted({ name: 'cuMemSetAccess' })).toEqual([
      'export function cuMemSetAccessUnchecked(ptr: U64Halves, size: number, desc: U64Halves, count: number): number {',
      "const call = (cuMemSetAccessUnchecked_ ??= driver.bind('cuMemSetAccess', 10020, 4))",
      'const slots = slots32',
      'slots[0] = ptr.low',
      'slots[1] = ptr.high',
      'slots[2] = size',
      'slots[3] = size / 4294967296',
      'slots[4] = desc.low',
      'slots[5] = desc.high',
      'slots[6] = count',
      'slots[7] = count / 4294967296',
      'return call()',
      '}',
      '',
    ])
  })

  test('passes each parameter in the form named by the table', () => {
    const forms = { dstDevice: 'bigint', uc: 'fill.byte', N: 0, hStream: 'words' } as const
    expect(emitted({ name: 'cuMemsetD8Async', inContext: true, as: 'fillBytes', forms })).toEqual([
      'export function fillBytes(context: U64Halves, dstDevice: bigint, fill: { readonly byte: number }, hStreamLow: number, hStreamHigh: number): number {',
      "const call = (fillBytes_ ??= driver.bind('cuMemsetD8Async', 3020, 4))",
      'const slots = slots32',
      'slots[2 * contextSlot] = context.low',
      'slots[2 * contextSlot + 1] = context.high',
      'slots64[0] = dstDevice',
      'slots[2] = fill.byte',
      'slots[4] = 0',
      'slots[5] = 0',
      'slots[6] = hStreamLow',
      'slots[7] = hStreamHigh',
      'return call()',
      '}',
      '',
    ])
  })

  test.each<[string, UncheckedCall, RegExp]>([
    ['no function of the library', { name: 'cuNothing' }, /the spec of driver has no cuNothing/],
    ['a form of no parameter', { name: 'cuMemUnmap', forms: { address: 'words' } }, /cuMemUnmap has no address/],
    [
      'half of a parameter of 64 bits',
      { name: 'cuGraphAddNode', forms: { numDependencies: 'number' } },
      /cuGraphAddNode: numDependencies has 64 bits/,
    ],
    ['a float', { name: 'cuParamSetf' }, /cuParamSetf: value is of a kind that no unchecked function takes/],
    ['a structure', { name: 'cuIpcOpenMemHandle' }, /cuIpcOpenMemHandle: handle is of a kind/],
  ])('is refused for %s', (_, call, message) => {
    expect(() => emitted(call)).toThrow(message)
  })
})
