import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { supportedArchitectures } from '@shoal/nvrtc'
import { LibraryNotFoundError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../../tooling/config/src/scratchFolder.js'
import { start, startRanks } from '../../testing/program.js'
import { readCheckpoint } from '../src/checkpoint.js'

const [main, check] = ['main', 'check'].map((name) => new URL(`../dist/${name}.js`, import.meta.url)) as [URL, URL]
const folder = scratchFolder()
const reason = missing()
process.env['SHOAL_CACHE_FOLDER'] = join(folder, 'cache')

function missing(): string | undefined {
  try {
    supportedArchitectures()
    return undefined
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return 'no libnvrtc on this machine: set SHOAL_NVRTC_LIBRARY'
    throw error
  }
}

const text = join(folder, 'text.txt')
writeFileSync(text, 'the quick brown fox jumps over the lazy dog. '.repeat(40))
const sizes = ['--context', '8', '--width', '32', '--heads', '2', '--layers', '1', '--batch', '2', '--text', text]
const out = (name: string): string[] => ['--out', join(folder, name)]
const checkpointIn = (name: string) => readFileSync(join(folder, name, 'checkpoint.bin'))

async function succeeded(program: ReturnType<typeof start>): Promise<string> {
  const { code, output, errors } = await program.end
  expect(errors).not.toContain('ShoalLeakWarning')
  expect(code, output + errors).toBe(0)
  return output
}

test('training with one rank and with two reaches the losses of the reference', async ({ skip }) => {
  if (reason !== undefined) return skip(reason)
  const losses = []
  for (const ranks of [1, 2]) {
    const output = await succeeded(startRanks(ranks, check))
    expect(output).toContain(`, ${ranks} ranks`)
    expect(output).toContain('weights of 0 ranks differ')
    expect(output).toMatch(/largest distance to the reference in double precision: (0|\d\.\d)e-[5-9]/)
    losses.push(JSON.parse(/losses (\[.*\])/.exec(output)?.[1] ?? '[]') as number[])
  }
  const [one = [], two = []] = losses
  expect(one).toHaveLength(20)
  for (const [step, loss] of one.entries()) expect(two[step]).toBeCloseTo(loss, 5)
  expect(one.at(-1)).toBeLessThan((one[0] as number) - 0.3)
})

describe('a training run of gpt', () => {
  test('resumed from a checkpoint equals an uninterrupted run, bit for bit', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const whole = await succeeded(start(main, [...sizes, ...out('whole'), '--steps', '12', '--every', '5']))
    expect(whole).toMatch(/█░+ {2}5\/12 {2}loss \d\.\d{4} {2}[\d.]+ steps\/s/)
    expect(whole).toMatch(/█{24} 12\/12/)
    await succeeded(start(main, [...sizes, ...out('parts'), '--steps', '7', '--until', '12']))
    expect(checkpointIn('parts')).not.toEqual(checkpointIn('whole'))
    await succeeded(start(main, ['--text', text, ...out('parts'), '--steps', '12', '--resume']))
    expect(checkpointIn('parts')).toEqual(checkpointIn('whole'))
    const svg = readFileSync(join(folder, 'whole', 'loss.svg'), 'utf8')
    const [curve] = /(?<=points=")[^"]*/.exec(svg) ?? []
    expect(curve?.split(' ')).toHaveLength(12)
  })

  test('resumed with another number of ranks has the same losses', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    await succeeded(start(main, [...sizes, ...out('shared'), '--steps', '4', '--until', '12']))
    await succeeded(startRanks(2, main, ['--text', text, ...out('shared'), '--steps', '12', '--resume']))
    const [two, one] = ['shared', 'whole'].map((name) => readCheckpoint(join(folder, name, 'checkpoint.bin')).losses)
    expect(two).toHaveLength(12)
    for (const [step, loss] of (one ?? []).entries()) expect(two?.[step]).toBeCloseTo(loss, 4)
    const refused = await startRanks(3, main, ['--text', text, ...out('shared'), '--resume']).end
    expect(refused.errors).toContain('gpt: 3 ranks cannot share the 2 sequences of the checkpoint')
    expect(refused.code).not.toBe(0)
  })

  test('writes the same text for the same seed', async ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const written = async (seed: number): Promise<string> => {
      const words = ['--resume', '--steps', '0', '--sample', '40', '--prompt', 'the ', '--seed', String(seed)]
      const output = await succeeded(start(main, ['--text', text, ...out('whole'), ...words]))
      return output.slice(output.indexOf('\n') + 1)
    }
    const [first, again, other] = [await written(3), await written(3), await written(4)]
    expect(first).toMatch(/^the [a-z. ]{40}\n$/)
    expect(again).toBe(first)
    expect(other).not.toBe(first)
  })
})

describe('gpt refuses', () => {
  test.for([
    ['a width that the heads cannot share', ['--width', '64', '--heads', '3'], 'width must be a multiple of 32 and of'],
    ['an option that is no number', ['--steps', 'many'], '--steps must be an integer of at least 0'],
    ['an option that there is not', ['--speed', '9'], "Unknown option '--speed'"],
    ['a text that is too short', ['--context', '2000'], 'the text must have more than 2000 characters, not 1800'],
    ['a text that is not there', ['--text', '/nowhere.txt'], 'ENOENT'],
    ['a checkpoint that is not there', ['--resume', ...out('nothing')], 'ENOENT'],
    [
      'a character that the model does not know',
      ['--resume', ...out('whole'), '--prompt', 'ß'],
      '"ß"',
      '--sample',
      '1',
    ],
  ] as const)('%s', async ([, words, message, ...more], { skip }) => {
    if (reason !== undefined) return skip(reason)
    const { code, errors } = await start(main, [...sizes, ...out('refused'), ...words, ...more]).end
    expect(errors).toContain('gpt: ')
    expect(errors).toContain(message)
    expect(errors).not.toContain('    at ')
    expect(code).toBe(2)
  })

  test('a truncated checkpoint, and a file of another kind', ({ skip }) => {
    if (reason !== undefined) return skip(reason)
    const file = join(folder, 'cut.bin')
    writeFileSync(file, checkpointIn('whole'))
    truncateSync(file, checkpointIn('whole').length - 4)
    expect(() => readCheckpoint(file)).toThrow('cut.bin is not whole')
    expect(() => readCheckpoint(text)).toThrow('text.txt is no checkpoint')
    expect(existsSync(join(folder, 'refused', 'checkpoint.bin'))).toBe(false)
  })

  test('a machine without NVRTC, and names the package to install', async () => {
    const without = { SHOAL_NVRTC_LIBRARY: '/nowhere/libnvrtc.so.13' }
    const { code, errors } = await start(main, [...sizes, ...out('none')], without).end
    expect(errors).toContain('gpt: Cannot load NVIDIA NVRTC')
    expect(errors).toContain('nvidia-cuda-nvrtc')
    expect(code).toBe(2)
  })
})
