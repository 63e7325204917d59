import { inspect } from 'node:util'
import { runInNewContext } from 'node:vm'
import {
  AbortedError,
  BusyError,
  inspectLine,
  loadedFrom,
  type OptionKeys,
  optionalBoolean,
  optionalOptions,
  optionalSignal,
  optionalTimeout,
  optionsChecker,
  requireAddress,
  requireCount,
  requireFunction,
  requireInstance,
  requireInteger,
  requireKeyOf,
  requireNumber,
  requireOneOf,
  requireOptions,
  requireText,
  requireWaitOptions,
} from '@shoal/types'
import { describe, expect, it } from 'vitest'

interface Options {
  readonly stream?: unknown
  readonly count?: number
}
const keys: OptionKeys<Options> = { stream: true, count: true }

const junk: readonly unknown[] = [
  undefined,
  null,
  Number.NaN,
  1.5,
  'three',
  Symbol('s'),
  true,
  {},
  Object.create(null),
  [],
  () => 0,
  new Proxy({}, { getPrototypeOf: () => expect.fail('the prototype was asked for in vain') as never }),
]

function refusal(check: () => unknown): Error {
  try {
    check()
  } catch (error) {
    return error as Error
  }
  return expect.fail('nothing was thrown')
}

describe('scalar arguments', () => {
  it('are accepted within their range', () => {
    expect(requireInteger(3, 'f', 'x', 0, 3)).toBe(3)
    expect(requireCount(3n, 'f', 'x')).toBe(3)
    expect(requireNumber(0.5, 'f', 'x', 0, 1)).toBe(0.5)
    expect(requireAddress(2n ** 64n - 1n, 'f', 'x')).toBe(2n ** 64n - 1n)
    expect(requireText('axpy', 'f', 'x')).toBe('axpy')
    expect(optionalBoolean(undefined, 'f', 'x', true)).toBe(true)
    expect(requireOneOf('b', 'f', 'x', ['a', 'b'])).toBe('b')
    expect(requireKeyOf('b', 'f', 'x', { a: 1, b: 2 })).toBe(2)
  })

  it('are refused with function, parameter, expected and actual value', () => {
    expect(refusal(() => requireInteger(4, 'Stream.create', 'options.priority', -5, 0))).toEqual(
      new RangeError('Stream.create: options.priority must be an integer from -5 to 0, not 4'),
    )
    expect(refusal(() => requireInteger('4', 'f', 'count', 0))).toEqual(
      new TypeError("f: count must be an integer from 0 to 2^53 - 1, not '4'"),
    )
    expect(refusal(() => requireOneOf('c', 'f', 'op', ['sum', 'min', 'max']))).toEqual(
      new TypeError("f: op must be 'sum', 'min' or 'max', not 'c'"),
    )
    expect(refusal(() => requireText('a\0b', 'f', 'name')).message).toContain('without NUL')
  })

  it.each([Number.POSITIVE_INFINITY, -1, 2 ** 53])('are refused as out of range: %s', (value) => {
    expect(refusal(() => requireInteger(value, 'f', 'x', 0))).toBeInstanceOf(RangeError)
  })

  it('of another type are refused with a TypeError', () => {
    for (const value of junk) {
      expect(refusal(() => requireInteger(value, 'f', 'x', 0))).toBeInstanceOf(TypeError)
      expect(refusal(() => requireAddress(value, 'f', 'x'))).toBeInstanceOf(TypeError)
      expect(refusal(() => requireKeyOf(value, 'f', 'x', { a: 1 }))).toBeInstanceOf(TypeError)
      if (typeof value !== 'function') expect(refusal(() => requireFunction(value, 'f', 'x'))).toBeInstanceOf(TypeError)
    }
  })

  it('do not match inherited names of a table of words', () => {
    expect(refusal(() => requireKeyOf('toString', 'f', 'x', { a: 1 }))).toBeInstanceOf(TypeError)
  })
})

describe('options arguments', () => {
  it('are plain objects with known keys, from any realm', () => {
    const options = { stream: 1 }
    expect(requireOptions(options, 'f', keys)).toBe(options)
    expect(requireOptions(runInNewContext('({ count: 2 })'), 'f', keys)).toEqual({ count: 2 })
    expect(requireOptions(Object.assign(Object.create(null), { count: 2 }), 'f', keys)).toEqual({ count: 2 })
    expect(optionalOptions(undefined, 'f', keys)).toEqual({})
  })

  it('with unknown keys are refused by name, also inherited keys', () => {
    expect(refusal(() => requireOptions({ strem: 1 }, 'record', keys))).toEqual(
      new TypeError("record: options must have only the keys stream, count, not 'strem'; did you mean 'stream'?"),
    )
    expect(refusal(() => requireOptions(Object.create({ external: true }), 'f', keys))).toBeInstanceOf(TypeError)
  })

  it('are refused equally by a prepared checker', () => {
    const six = { a: true, b: true, c: true, d: true, e: true, f: true } as const
    const check = optionsChecker<{ [K in keyof typeof six]?: number }>(six, 'config')
    const all = { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 }
    expect(check(all, 'f')).toBe(all)
    expect(check(runInNewContext('({ f: 2 })'), 'f')).toEqual({ f: 2 })
    for (const value of [{ a: 1, g: 2 }, Object.create({ g: 1 }), new Map(), [], null, 5, undefined]) {
      expect(refusal(() => check(value, 'f'))).toEqual(refusal(() => requireOptions(value, 'f', six, 'config')))
    }
  })

  it('are refused if they are class instances or not objects', () => {
    class Stream {
      readonly stream = 1
    }
    for (const value of [
      ...junk.filter((one) => typeof one !== 'object' || one === null),
      new Stream(),
      [],
      new Map(),
    ]) {
      const error = refusal(() => requireOptions(value, 'f', keys))
      expect(error).toBeInstanceOf(TypeError)
      expect(error.message).toMatch(/^f: options must be a plain object such as \{ stream, count \}, not /)
    }
    const nameless = new (class {
      readonly stream = 1
    })()
    expect(() => requireOptions(nameless, 'f', keys)).toThrow(/, not an object of a class without a name$/)
  })

  it('rethrow errors of getters', () => {
    const failure = new Error('the getter')
    const options = {
      get timeout(): number {
        throw failure
      },
    }
    expect(refusal(() => requireWaitOptions(options, 'f'))).toBe(failure)
  })
})

describe('timeout and signal arguments', () => {
  it('are milliseconds that a timer can count', () => {
    expect(optionalTimeout(undefined, 'f')).toBeUndefined()
    expect(optionalTimeout(0, 'f')).toBe(0)
    expect(optionalTimeout(2 ** 31 - 1, 'f')).toBe(2 ** 31 - 1)
    for (const value of [-1, 2 ** 31, Number.POSITIVE_INFINITY]) {
      expect(refusal(() => optionalTimeout(value, 'f'))).toBeInstanceOf(RangeError)
    }
    for (const value of ['5', Number.NaN, null, 5n]) {
      expect(refusal(() => optionalTimeout(value, 'f'))).toBeInstanceOf(TypeError)
    }
  })

  it('accept only AbortSignals, and detect at once that one has fired', () => {
    expect(refusal(() => optionalSignal({ aborted: true }, 'f'))).toBeInstanceOf(TypeError)
    const error = refusal(() => requireWaitOptions({ signal: AbortSignal.abort('enough') }, 'Stream.synchronize'))
    expect(error).toBeInstanceOf(AbortedError)
    expect(error.message).toContain('Stream.synchronize')
  })
})

describe('instance arguments', () => {
  class Stream {
    static readonly [loadedFrom] = 'file:///a/index.js'
    readonly handle = 1n
  }

  it('are distinguished from all other values', () => {
    const stream = new Stream()
    expect(requireInstance(stream, 'f', 'stream', Stream)).toBe(stream)
    expect(refusal(() => requireInstance(5, 'f', 'stream', Stream))).toEqual(
      new TypeError('f: stream must be a Stream, not 5'),
    )
  })

  it('of a second copy of the package are refused with both paths', () => {
    const ours = Stream
    const theirs = (() => {
      class Stream {
        static readonly [loadedFrom] = 'file:///b/index.js'
        readonly handle = 2n
      }
      return Stream
    })()
    const { message } = refusal(() => requireInstance(new theirs(), 'f', 'stream', ours))
    expect(message).toContain('file:///a/index.js')
    expect(message).toContain('file:///b/index.js')
    expect(message).toContain('Two copies')
  })
})

describe('printed objects', () => {
  it('take one line, with addresses in hexadecimal', () => {
    expect(inspectLine('Stream', { device: 0, handle: 255n, name: undefined })).toBe(
      'Stream { device: 0, handle: 0xff }',
    )
    expect(inspectLine('Module', {})).toBe('Module {}')
    expect(inspect({ [Symbol.for('nodejs.util.inspect.custom')]: () => inspectLine('A', { b: 'c' }) })).toBe(
      "A { b: 'c' }",
    )
  })
})

it('BusyError names the call under way', () => {
  const error = new BusyError({ object: 'Communicator', api: 'allReduce', underWay: 'split' })
  expect(error.code).toBe('SHOAL_BUSY')
  expect(error.message).toBe('allReduce: the Communicator is busy with split; await split first.')
})
