import { randomBytes } from 'node:crypto'
import { createLane, NativeLibrary as Library, type NativeLibrary, offThread } from '@shoal/ffi'
import {
  type CallLayout,
  floatSlot,
  hostConvention,
  type LoweredParameter,
  lowerCall,
  maximumFloats,
  putF32,
  putF64,
  putHandle,
  putPointer,
  resultSlot,
  slots32,
  slots64,
} from '@shoal/ffi/calls'
import { beforeAll, describe, expect, test } from 'vitest'
import { build } from './fixtures/stub.js'

// A library of functions with random signatures. Each function records the bits of its arguments and returns preset
// bits.

const integers = {
  i8: 'int8_t',
  u8: 'uint8_t',
  i16: 'int16_t',
  u16: 'uint16_t',
  i32: 'int32_t',
  u32: 'uint32_t',
  i64: 'int64_t',
  u64: 'uint64_t',
  pointer: 'void *',
} as const
const floats = { f32: 'float', f64: 'double' } as const
const widths = { i8: 1, u8: 1, i16: 2, u16: 2, i32: 4, u32: 4, i64: 8, u64: 8, pointer: 8, f32: 4, f64: 8 } as const
type Scalar = keyof typeof widths
type Parameter = Scalar | { readonly bytes: number }
const structureSizes = [1, 3, 4, 7, 8, 9, 12, 16, 20, 24, 40, 128]
type Result = Scalar | 'bool' | 'void' | { readonly bytes: number }

interface Signature {
  readonly name: string
  readonly parameters: readonly Parameter[]
  readonly result: Result
}

// Every run uses the same signatures, so that a failure can be repeated.
let seed = 0x5eed
function random(below: number): number {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
  return Math.floor((seed / 2 ** 32) * below)
}
const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T

function shuffled<T>(list: readonly T[]): T[] {
  const left = [...list]
  return list.map(() => left.splice(random(left.length), 1)[0] as T)
}

const integerKinds = Object.keys(integers) as (keyof typeof integers)[]
const floatKinds = ['f32', 'f64'] as const
const results: Result[] = [
  ...integerKinds,
  ...floatKinds,
  'bool',
  'void',
  ...structureSizes.map((bytes) => ({ bytes })),
]

/** The block's slots before this one are arguments. */
const contextSlot = 46
const mostWords = contextSlot

function signatures(): Signature[] {
  const list: Signature[] = []
  const add = (words: number, floating: number, structures: readonly number[]): void => {
    const parameters = shuffled<Parameter>([
      ...Array.from({ length: words }, () => pick(integerKinds)),
      ...Array.from({ length: floating }, () => pick(floatKinds)),
      ...structures.map((bytes) => ({ bytes })),
    ])
    list.push({ name: `mixed${list.length}`, parameters, result: results[list.length % results.length] as Result })
  }
  for (let words = 0; words <= 12; words++) for (let floating = 0; floating <= 8; floating++) add(words, floating, [])
  // Up to the number of words in a block, because different numbers of words use different code paths.
  for (let words = 13; words <= mostWords; words++) for (const floating of [0, 1]) add(words, floating, [])
  for (let round = 0; round < 60; round++) {
    add(
      random(7),
      random(9),
      Array.from({ length: 1 + random(2) }, () => pick(structureSizes.slice(0, -1))),
    )
  }
  for (const kind of floatKinds) list.push({ name: `eight_${kind}`, parameters: Array(8).fill(kind), result: 'void' })
  add(8, 8, [16])
  add(3, 4, [128])
  return list
}

const nameOf = (parameter: Parameter | Result): string => {
  if (typeof parameter === 'object') return `struct s${parameter.bytes}`
  if (parameter === 'bool') return '_Bool'
  return parameter === 'void' ? 'void' : (({ ...integers, ...floats } as Record<string, string>)[parameter] ?? '')
}
const bytesOf = (parameter: Parameter): number => (typeof parameter === 'object' ? parameter.bytes : widths[parameter])

function source({ name, parameters, result }: Signature): string {
  const list = parameters.map((parameter, index) => `${nameOf(parameter)} a${index}`).join(', ') || 'void'
  const lines = parameters.map(
    (parameter, index) => `memcpy(received + ${index} * 16, &a${index}, ${bytesOf(parameter)});`,
  )
  const returned =
    result === 'void'
      ? ''
      : result === 'bool'
        ? 'return reply[0] & 1;'
        : `${nameOf(result)} r; memcpy(&r, reply, sizeof r); return r;`
  return `${nameOf(result)} ${name}(${list}) {\n  forget();\n  ${lines.join('\n  ')}\n  ${returned}\n}\n`
}

const all = signatures()

function librarySource(): string {
  const structures = structureSizes.map((bytes) => `struct s${bytes} { unsigned char b[${bytes}]; };`)
  return `
#include <stdint.h>
#include <string.h>
uint64_t received[${mostWords + 1} * 16];
uint64_t reply[16];
static void forget(void) { memset(received, 0xa5, sizeof received); }
uint64_t *received_at(void) { return received; }
uint64_t *reply_at(void) { return reply; }
/* Results as a callee may leave them: with rubbish in the upper bits of the register. */
#if defined(__x86_64__)
#define RETURN "movq %rdi, %rax\\n ret\\n"
#else
#define RETURN "ret\\n"
#endif
__asm__(".globl rubbish\\n.type rubbish, %function\\nrubbish:\\n" RETURN);
int raise(int code) { return code; }
int copy(uint64_t *to, const uint64_t *from, int n) { memcpy(to, from, (size_t)n); return 0; }
${structures.join('\n')}
${all.map(source).join('\n')}`
}

let library: NativeLibrary
/** A view of the library's memory. */
let receivedAddress: bigint
let replyAddress: bigint
let copy: (to: PointerLike, from: PointerLike, bytes: number) => void
type PointerLike = bigint | Uint8Array

beforeAll(() => {
  library = new Library({ id: 'mixed', title: 'mixed', environment: 'SHOAL_TEST_MIXED', linux: [], hint: 'build it' })
  library.setPath(build('libmixed.so', librarySource(), ['-Wno-builtin-declaration-mismatch']))
  receivedAddress = library.bindBig('received_at', 0, 0, 'pointer')()
  replyAddress = library.bindBig('reply_at', 0, 0, 'pointer')()
  const call = library.bind('copy', 0, 3)
  copy = (to, from, bytes) => {
    putPointer(0, to, 'copy', 'to')
    putPointer(1, from, 'copy', 'from')
    slots32[4] = bytes
    call()
  }
})

const shapeOf = (parameter: Parameter): LoweredParameter =>
  typeof parameter === 'object' ? parameter : parameter === 'f32' || parameter === 'f64' ? 'float' : 'word'

function layoutOf({ parameters, result }: Signature): CallLayout {
  return lowerCall(parameters.map(shapeOf), hostConvention(), typeof result === 'object' ? result.bytes : 0)
}

/** Writes random bits as every argument, including bits that the callee does not read. */
function writeRandom({ parameters }: Signature, layout: CallLayout): Uint8Array[] {
  return parameters.map((parameter, index) => {
    const bits = randomBytes(Math.max(8, bytesOf(parameter)))
    if (typeof parameter === 'object') layout.putStruct(index, bits, 'mixed', `a${index}`)
    else slots64[layout.slot(index)] = bits.readBigUInt64LE()
    return bits.subarray(0, bytesOf(parameter))
  })
}

function readReceived({ parameters }: Signature): Uint8Array[] {
  const bytes = new Uint8Array((mostWords + 1) * 16 * 8)
  copy(bytes, receivedAddress, bytes.length)
  return parameters.map((parameter, index) => bytes.slice(index * 128, index * 128 + bytesOf(parameter)))
}

function setReply(): Buffer {
  const bits = randomBytes(128)
  copy(replyAddress, bits, 128)
  return bits
}

/** Returns the JavaScript value of a result with these bits. */
function expected(result: Result, bits: Buffer): number | bigint | boolean | Uint8Array | undefined {
  if (typeof result === 'object') return new Uint8Array(bits.subarray(0, result.bytes))
  switch (result) {
    case 'void':
      return undefined
    case 'bool':
      return (bits[0] as number) % 2 === 1
    case 'i8':
      return bits.readInt8()
    case 'u8':
      return bits.readUInt8()
    case 'i16':
      return bits.readInt16LE()
    case 'u16':
      return bits.readUInt16LE()
    case 'i32':
      return bits.readInt32LE()
    case 'u32':
      return bits.readUInt32LE()
    case 'i64':
      return bits.readBigInt64LE()
    case 'u64':
    case 'pointer':
      return bits.readBigUInt64LE()
    case 'f32':
      return bits.readFloatLE()
    case 'f64':
      return bits.readDoubleLE()
  }
}

function bind({ name, result }: Signature, layout: CallLayout): () => unknown {
  if (typeof result === 'object') return library.bindStruct(name, 0, layout, result.bytes)
  if (result === 'i64' || result === 'u64' || result === 'pointer') return library.bindBig(name, 0, layout, result)
  const call = library.bind(name, 0, layout, result)
  return result === 'bool' ? () => call() !== 0 : call
}

describe('every mix of integers, floating-point numbers and structures', () => {
  test(`${all.length} signatures pass and return every bit`, () => {
    expect(all.length).toBeGreaterThan(230)
    for (const signature of all) {
      const layout = layoutOf(signature)
      const call = bind(signature, layout)
      for (let round = 0; round < 5; round++) {
        const bits = setReply()
        for (let slot = 0; slot < contextSlot; slot++) slots64[slot] = randomBytes(8).readBigUInt64LE()
        const sent = writeRandom(signature, layout)
        const returned = call()
        const raw = slots64[resultSlot] as bigint
        const what = `${signature.name}(${signature.parameters.map(nameOf).join(', ')})`
        expect(readReceived(signature), what).toEqual(sent.map((part) => new Uint8Array(part)))
        expect(returned, `${what} → ${nameOf(signature.result)}`).toEqual(expected(signature.result, bits))
        if (signature.result === 'f64') expect(raw).toBe(bits.readBigUInt64LE())
        if (signature.result === 'f32') expect(raw).toBe(BigInt(bits.readUInt32LE()))
      }
    }
  })

  test('works on another thread too', async () => {
    using lane = createLane()
    for (const signature of all) {
      const layout = layoutOf(signature)
      const call = bind(signature, layout)
      const bits = setReply()
      let sent: Uint8Array[] = []
      const [returned, ...rest] = await offThread({ lane, results: 'value' }, () => {
        sent = writeRandom(signature, layout)
        const now = call()
        // No function was called, so the result must not show an earlier call's value.
        if (typeof signature.result === 'object') expect(now).toEqual(new Uint8Array(signature.result.bytes))
        else expect(Number(now)).toBe(0)
        slots64.fill(0n)
      })
      const what = `${signature.name}(${signature.parameters.map(nameOf).join(', ')}) → ${nameOf(signature.result)}`
      expect(readReceived(signature), what).toEqual(sent.map((part) => new Uint8Array(part)))
      expect(returned, what).toEqual(expected(signature.result, bits))
      expect(rest).toEqual([])
    }
  })
})

describe('floating-point arguments', () => {
  const eight = (kind: 'f32' | 'f64'): Signature => all.find(({ name }) => name === `eight_${kind}`) as Signature

  test.each([
    ['f64', [0, -0, 0.1, Number.MIN_VALUE, Number.MAX_VALUE, Infinity, -Infinity, Number.NaN, 2 ** 53 + 2]],
    ['f32', [0, -0, 0.1, 2 ** -149, 2 ** -150, 3.4028234663852886e38, 1e39, Infinity, -Infinity, Number.NaN, 16777217]],
  ] as const)('%s: numbers are converted as in C', (kind, values) => {
    const signature = eight(kind)
    const layout = layoutOf(signature)
    const call = bind(signature, layout)
    for (const value of values) {
      for (const index of signature.parameters.keys()) {
        if (kind === 'f32') putF32(layout.slot(index), value, 'f', 'a')
        else putF64(layout.slot(index), value, 'f', 'a')
      }
      call()
      const want =
        kind === 'f32' ? new Uint8Array(Float32Array.of(value).buffer) : new Uint8Array(Float64Array.of(value).buffer)
      expect(readReceived(signature)).toEqual(signature.parameters.map(() => want))
    }
  })

  test('other values than numbers are refused by name', () => {
    for (const put of [putF32, putF64]) {
      for (const wrong of [1n, '1', null, undefined, {}]) {
        expect(() => put(floatSlot, wrong as never, 'cuF', 'bias')).toThrow(/^cuF: bias must be a number, not /)
        expect(() => put(floatSlot, wrong as never, 'cuF', 'bias')).toThrow(TypeError)
      }
    }
  })

  test('more than the registers hold are refused, and never put in a wrong place', () => {
    expect(() => lowerCall(Array(maximumFloats + 1).fill('float'))).toThrow(RangeError)
    expect(() => library.bind('copy', 0, { ...lowerCall([]), floatCount: 9 })).toThrow(/registers/)
  })
})

describe('floating-point arguments per platform', () => {
  const parameters = ['word', 'float', 'word', 'float', 'word', 'float'] as const
  const slots = (convention: 'sysv' | 'aapcs64' | 'win64', resultBytes = 0): (number | string)[] => {
    const layout = lowerCall(parameters, convention, resultBytes)
    return parameters.map((_, index) => {
      const slot = layout.slot(index)
      return slot >= floatSlot ? `f${slot - floatSlot}` : slot
    })
  }

  test('use separate registers, or shared positions on Windows', () => {
    expect(slots('sysv')).toEqual([0, 'f0', 1, 'f1', 2, 'f2'])
    expect(slots('aapcs64')).toEqual([0, 'f0', 1, 'f1', 2, 'f2'])
    expect(slots('win64')).toEqual([0, 'f1', 2, 'f3', 4, 5])
    expect(slots('win64', 24)).toEqual([0, 'f2', 2, 3, 4, 5])
    expect(lowerCall(parameters, 'win64')).toMatchObject({ slotCount: 6, floatCount: 4 })
    expect(lowerCall(parameters, 'sysv')).toMatchObject({ slotCount: 3, floatCount: 3 })
  })

  test('lose a System V register to a hidden argument, as structures do', () => {
    const shapes = ['word', 'word', 'word', 'word', { bytes: 16 }, 'word'] as const
    const slotsOf = (resultBytes: number): number[] =>
      shapes.map((_, i) => lowerCall(shapes, 'sysv', resultBytes).slot(i))
    expect(slotsOf(16)).toEqual([0, 1, 2, 3, 4, 6])
    expect(slotsOf(24)).toEqual([0, 1, 2, 3, 5, 4])
  })
})

describe('call results', () => {
  test('bits beyond a small result are dropped', () => {
    const call = (kind: 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'bool', word: bigint): number => {
      const bound = library.bind('rubbish', 0, 1, kind)
      putHandle(0, word, 'rubbish', 'word')
      return bound()
    }
    const word = 0xdead_beef_cafe_8180n
    expect(call('i8', word)).toBe(-128)
    expect(call('u8', word)).toBe(0x80)
    expect(call('i16', word)).toBe(0x8180 - 0x10000)
    expect(call('u16', word)).toBe(0x8180)
    expect(call('i32', word)).toBe(0xcafe8180 - 2 ** 32)
    expect(call('u32', word)).toBe(0xcafe8180)
    expect(call('bool', 0xffff_ff00n)).toBe(0)
    expect(call('bool', 0xffff_ff01n)).toBe(1)
  })

  test('a structure that no call can return is refused', () => {
    for (const bytes of [0, -1, 1.5, 129, Number.NaN]) {
      expect(() => library.bindStruct('copy', 0, 0, bytes)).toThrow(
        /copy: byteLength of a structure by value must be an integer from 1 to 128, not /,
      )
    }
  })

  test('of recorded calls are statuses by default, or values on request; only a status ends the sequence', async () => {
    const raise = library.bind('raise', 0, 1)
    const half = library.bind('rubbish', 0, 1, 'u16')
    const address = library.bindBig('received_at', 0, 0, 'pointer')
    const record = (last: number) => () => {
      putHandle(0, 7n, 'rubbish', 'word')
      half()
      address()
      putHandle(0, BigInt(last), 'raise', 'code')
      raise()
      raise()
    }
    expect(await offThread({}, record(0))).toEqual([0, 0, 0, 0])
    expect(await offThread({}, record(5))).toEqual([0, 0, 5])
    expect(await offThread({ stopOnError: false }, record(5))).toEqual([0, 0, 5, 5])
    expect(await offThread({ results: 'value' }, record(5))).toEqual([7, receivedAddress, 5])
    expect(await offThread({ results: 'status' }, record(5))).toEqual([0, 0, 5])
  })
})
