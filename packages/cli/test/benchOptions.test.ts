import { afterEach, describe, expect, test, vi } from 'vitest'
import { optionsOf } from '../src/bench/command.js'
import { oneOf, parseCommandLine, wholeNumber } from '../src/bench/commandLine.js'
import { firstRuns, firstRunsOf, readOptions, typeNames } from '../src/bench/options.js'
import { parseBytes, requireFewSizes, sizesOf } from '../src/bench/size.js'
import { HelpRequest, UsageError } from '../src/command.js'

afterEach(() => void vi.unstubAllEnvs())

const [KiB, MiB, GiB] = [2 ** 10, 2 ** 20, 2 ** 30]
const read = (...words: string[]) => readOptions(words, optionsOf)
const sweep = { least: 8, most: 128 * MiB, factor: 2, step: undefined }
const defaults = {
  ...{ test: 'all-reduce', sweep, types: ['f32'], reductions: ['sum'], root: 0, iterations: 20, warmUps: 5 },
  ...{ check: true, inPlace: 'both', devices: undefined, timeout: 120_000 },
  ...{ json: undefined, svg: undefined, software: false },
}

test('missing options have the defaults from the usage text', () => {
  expect(read('all-reduce')).toEqual(defaults)
  expect(read('reduce')).toEqual({ ...defaults, test: 'reduce' })
})

test.each<[string[], object]>([
  [['-b', '16'], { sweep: { ...sweep, least: 16 } }],
  [['--min-bytes', '1G'], { sweep: { ...sweep, least: GiB, most: GiB } }],
  [['-e', '64K'], { sweep: { ...sweep, most: 64 * KiB } }],
  [['--max-bytes=8'], { sweep: { ...sweep, most: 8 } }],
  [['-f', '3'], { sweep: { ...sweep, factor: 3 } }],
  [['--step-factor', '2'], { sweep }],
  [['-i', '1M'], { sweep: { ...sweep, step: MiB } }],
  [['--step-bytes', '2M'], { sweep: { ...sweep, step: 2 * MiB } }],
  [['-d', 'bfloat16,f64'], { types: ['bf16', 'f64'] }],
  [['--datatype', 'all'], { types: Object.keys(typeNames) }],
  [['-o', 'max'], { reductions: ['max'] }],
  [['--op', 'all'], { reductions: ['sum', 'prod', 'max', 'min', 'avg'] }],
  [['-r', '3'], { root: 3 }],
  [['--root', 'all'], { root: -1 }],
  [['-n', '1'], { iterations: 1 }],
  [['--iterations', '2'], { iterations: 2 }],
  [['-w', '0'], { warmUps: 0 }],
  [['--warm-ups', '1'], { warmUps: 1 }],
  [['-c', '0'], { check: false }],
  [['--check', '1'], { check: true }],
  [['--in-place', 'both'], { inPlace: 'both' }],
  [['--in-place', 'in'], { inPlace: 'in' }],
  [['--in-place', 'out'], { inPlace: 'out' }],
  [['-g', '1'], { devices: 1 }],
  [['--devices', '4'], { devices: 4 }],
  [['--device', 'gpu'], { software: false }],
  [['--device', 'sim'], { software: true, sweep: { ...sweep, most: MiB } }],
  [['--device', 'sim', '-e', '2M'], { software: true, sweep: { ...sweep, most: 2 * MiB } }],
  [['--timeout', '1'], { timeout: 1000 }],
  [['--timeout', '2147483'], { timeout: 2_147_483_000 }],
  [['--json', 'a'], { json: 'a' }],
  [['--svg', 'b'], { svg: 'b' }],
  [['--json', '-', '--svg', 'b'], { json: '-', svg: 'b' }],
  [['--json', 'a', '--svg', '-'], { json: 'a', svg: '-' }],
])('shoal bench accepts %j', (words, changed) => {
  // Accepts every option.
  const test = { all: Object.values(optionsOf).flat() }
  expect(readOptions(['all', ...words], test)).toEqual({ ...defaults, test: 'all', ...changed })
})

test.each([
  ['sim', [], true],
  ['sim', ['--device', 'gpu'], false],
  ['other', [], false],
  ['other', ['--device', 'sim'], true],
] as const)('SHOAL_DEVICE=%s and %j', (variable, words, software) => {
  vi.stubEnv('SHOAL_DEVICE', variable)
  expect(read('all-reduce', ...words).software).toBe(software)
})

test('each test accepts its documented options', () => {
  const sizes = ['min-bytes', 'max-bytes', 'step-factor', 'step-bytes']
  const collective = [...sizes, 'datatype', 'check', 'devices', 'timeout']
  expect(optionsOf).toEqual({
    'all-reduce': [...collective, 'op', 'in-place'],
    'all-gather': [...collective, 'in-place'],
    'reduce-scatter': [...collective, 'op', 'in-place'],
    'all-to-all': collective,
    broadcast: [...collective, 'root', 'in-place'],
    reduce: [...collective, 'op', 'root', 'in-place'],
    gather: [...collective, 'root', 'in-place'],
    scatter: [...collective, 'root', 'in-place'],
    'send-recv': collective,
    put: [...sizes, 'check', 'devices', 'timeout'],
    get: [...sizes, 'check', 'devices', 'timeout'],
    atomic: ['check', 'devices', 'timeout'],
    barrier: ['devices', 'timeout'],
    calls: [],
  })
  const ofAll = ['--iterations=1', '--warm-ups=0', '--device=sim', '--json=a', '--svg=b']
  for (const test of Object.keys(optionsOf)) expect(read(test, ...ofAll)).toMatchObject({ test, iterations: 1 })
})

test.each<[string[], string]>([
  [['all-reduce', '--warm-ups=-1'], '--warm-ups must be a whole number from 0, got -1'],
  [['all-reduce', '-f', '1'], '--step-factor must be a whole number from 2, got 1'],
  [['all-reduce', '-n', '0'], '--iterations must be a whole number from 1, got 0'],
  [['all-reduce', '-g', '0'], '--devices must be a whole number from 1, got 0'],
  [['all-reduce', '--timeout', '0'], '--timeout must be a whole number from 1, got 0'],
  [['all-reduce', '--timeout', '2147484'], '--timeout must be at most 2147483 seconds, not 2147484'],
  [['reduce', '-r', '1.5'], '--root must be a whole number from 0, got 1.5'],
  [['all-reduce', '--json='], '--json must be the name of a file, or -'],
  [['all-reduce', '--svg', ''], '--svg must be the name of a file, or -'],
  [['all-reduce', '-c', '2'], '--check must be 0 or 1, got 2'],
  [['all-reduce', '-d', 'f32,'], '--datatype: no ; there are i8, u8, i32, u32, i64, u64, f16, f32, f64, bf16'],
  [['all-reduce', '-o', 'max,sum,all'], '--op: no all; there are sum, prod, max, min, avg, all'],
  [['all-reduce', '-b', '9', '-e', '8'], '--max-bytes 8 is less than --min-bytes 9'],
  [['all-reduce', '--json', '-', '--svg', '-'], '--json - and --svg - would both be printed: name a file for one'],
  [['all-reduce', '-e', '10008', '-i', '1'], '--step-bytes 1 makes 10001 sizes of 8 … 10008 bytes; 10000 are the most'],
])('%j is refused: %s', (words, message) => {
  expect(() => read(...words)).toThrow(UsageError)
  expect(() => read(...words)).toThrow(message)
})

test('--help takes precedence over errors in the command line', () => {
  for (const words of [['-h'], ['nothing', '--help'], ['calls', '-g', '0', '-h']])
    expect(() => read(...words)).toThrow(HelpRequest)
})

test('large first sizes get fewer warm-up iterations', () => {
  const sizes = [1, 223_696, 223_697, 2 ** 20, 2 ** 24, 2 ** 24 + 1, 2 ** 26, 2 ** 30]
  expect(sizes.map(firstRunsOf)).toEqual([firstRuns, 300, 299, 64, 4, 3, 3, 3])
  expect(firstRuns).toBe(300)
})

describe('numbers, words and sizes in options', () => {
  test('a whole number is written in digits and is at most 2^53 - 1', () => {
    expect(wholeNumber('7', '-x', 7)).toBe(7)
    expect(wholeNumber('9007199254740991', '-x', 0)).toBe(Number.MAX_SAFE_INTEGER)
    for (const text of ['6', '', ' 7', '7e0', '0x8', '+8', '7.5', '9007199254740992'])
      expect(() => wholeNumber(text, '-x', 7), text).toThrow(`-x must be a whole number from 7, got ${text}`)
  })

  test('a word must be one of the allowed words', () => {
    expect([oneOf('a', '-x', ['a', 'b']), oneOf('b', '-x', ['a', 'b'])]).toEqual(['a', 'b'])
    expect(() => oneOf('c', '-x', ['a', 'b'])).toThrow('-x must be a or b, got c')
  })

  test('a command line is split as Node does, and arguments refused by Node are usage errors', () => {
    const { values, positionals, tokens } = parseCommandLine(['a', '-x', '1', 'b'], {
      x: { type: 'string', short: 'x' },
    })
    expect([values['x'], positionals]).toEqual(['1', ['a', 'b']])
    expect(tokens.map(({ kind }) => kind)).toEqual(['positional', 'option', 'positional'])
    expect(() => parseCommandLine(['-y'], {})).toThrow(UsageError)
  })

  test.each([
    ['1', 1],
    ['8B', 8],
    ['1k', KiB],
    ['3KB', 3 * KiB],
    ['2MiB', 2 * MiB],
    ['1G', GiB],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('%s', (text, bytes) => {
    expect(parseBytes(text, '-b')).toBe(bytes)
  })

  test.each(['0', '0K', '', 'K', '1T', '1iB1', '-1', '1.5K', '9007199254740992', '8388608G'])(
    '%j is refused as a size',
    (text) => {
      expect(() => parseBytes(text, '-b')).toThrow(
        `-b must be a number of bytes such as 8, 64K, 16M or 1G, got ${text}`,
      )
    },
  )

  test('a range of sizes needs both ends, and must fit into memory', () => {
    expect(sizesOf({ least: 8, most: 64, factor: 2, step: undefined })).toEqual([8, 16, 32, 64])
    expect(sizesOf({ least: 8, most: 63, factor: 2, step: undefined })).toEqual([8, 16, 32])
    expect(sizesOf({ least: 8, most: 20, factor: 2, step: 4 })).toEqual([8, 12, 16, 20])
    expect(sizesOf({ least: 8, most: 8, factor: 2, step: 4 })).toEqual([8])
    const many = { least: 10, factor: 2, step: 10 }
    expect(() => requireFewSizes({ ...many, most: 100_009 })).not.toThrow()
    expect(() => requireFewSizes({ ...many, most: 100_010 })).toThrow(
      '--step-bytes 10 makes 10001 sizes of 10 … 100010',
    )
    expect(() => requireFewSizes({ ...many, most: 2 ** 50, step: undefined })).not.toThrow()
  })
})
