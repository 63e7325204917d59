import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { defineStructCodec, NativeMemory } from '@shoal/ffi'
import { expect, test } from 'vitest'

interface Inner {
  x: number
  flag: boolean
}
interface Outer {
  name: Uint8Array
  count: bigint
  inner: Inner
  list: number[]
  pairs: Inner[]
  ratio: number
  pointer: bigint
  small: number
}

const inner = defineStructCodec<Inner>({
  name: 'Inner',
  size: 8,
  alignment: 4,
  fields: [
    { name: 'x', offset: 0, kind: 'i32' },
    { name: 'flag', offset: 4, kind: 'bool' },
  ],
})
const outer = defineStructCodec<Outer>({
  name: 'Outer',
  size: 80,
  alignment: 8,
  fields: [
    { name: 'name', offset: 0, kind: 'i8', count: 5 },
    { name: 'count', offset: 8, kind: 'u64' },
    { name: 'inner', offset: 16, kind: inner },
    { name: 'list', offset: 24, kind: 'u16', count: 3 },
    { name: 'pairs', offset: 32, kind: inner, count: 2 },
    { name: 'ratio', offset: 48, kind: 'f64' },
    { name: 'pointer', offset: 56, kind: 'pointer' },
    { name: 'small', offset: 64, kind: 'f32' },
  ],
})
const value: Outer = {
  name: new Uint8Array([200, 2, 3, 4, 5]),
  count: 2n ** 64n - 1n,
  inner: { x: -9, flag: true },
  list: [1, 65535, 3],
  pairs: [
    { x: 1, flag: false },
    { x: 2, flag: true },
  ],
  ratio: Math.PI,
  pointer: 0xdeadbeefn,
  small: 1.5,
}

test('written structures are read back, at an offset, in every kind of memory', () => {
  expect(outer.read(outer.allocate(value))).toEqual(value)
  for (const memory of [
    new ArrayBuffer(200),
    NativeMemory.allocate(200),
    new Float64Array(25),
    new DataView(new ArrayBuffer(200)),
  ]) {
    outer.write(memory, value, 17)
    expect(outer.read(memory, 17)).toEqual(value)
  }
})

test('structures have the bytes that a C++ compiler produces', () => {
  const bytes = outer.allocate(value)
  const program = `
    #include <cstdio>
    #include <cstdint>
    struct Inner { int x; bool flag; };
    struct Outer { char name[5]; uint64_t count; Inner inner; uint16_t list[3]; Inner pairs[2]; double ratio; void* pointer; float small; uint64_t pad; };
    int main() { static_assert(sizeof(Outer) == 80); Outer o; fread(&o, 1, 80, stdin);
      printf("%d %llu %d %d %d %d %.17g %p %g", (unsigned char)o.name[0], (unsigned long long)o.count, o.inner.x, o.inner.flag, o.list[1], o.pairs[1].x, o.ratio, o.pointer, o.small); }`
  const file = `/tmp/shoal-struct-${randomBytes(6).toString('hex')}`
  execFileSync('g++', ['-std=c++17', '-x', 'c++', '-', '-o', file], { input: program })
  expect(execFileSync(file, { input: bytes, encoding: 'utf8' })).toBe(
    '200 18446744073709551615 -9 1 65535 2 3.1415926535897931 0xdeadbeef 1.5',
  )
  execFileSync('rm', [file])
})

test('a partial write keeps the other fields, and a view reads and writes in place', () => {
  const bytes = outer.allocate(value)
  outer.write(bytes, { ratio: 2, inner: { x: 5 } })
  expect(outer.read(bytes)).toEqual({ ...value, ratio: 2, inner: { x: 5, flag: true } })
  const view = outer.view(bytes)
  view.count = 3n
  view.inner.x = 77
  expect(outer.read(bytes)).toMatchObject({ count: 3n, inner: { x: 77 } })
  expect(outer.offsets.small).toBe(64)
})

test.each([
  [{ count: -1n }, RangeError, 'Outer.count'],
  [{ count: 'x' }, TypeError, 'Outer.count'],
  [{ list: [1, 2, 3, 4] }, RangeError, 'Outer.list'],
  [{ list: [65536] }, RangeError, 'Outer.list'],
  [{ inner: { x: 1.5 } }, TypeError, 'Inner.x'],
  [{ unknown: 1 }, TypeError, "Outer must have only its own fields, not 'unknown'"],
] as const)('%o is refused as a structure by name', (wrong, type, message) => {
  expect(() => outer.write(new Uint8Array(80), wrong as never)).toThrow(type)
  expect(() => outer.write(new Uint8Array(80), wrong as never)).toThrow(message)
})

test('memory too small for the structure is refused', () => {
  expect(() => outer.read(new Uint8Array(79))).toThrow(
    /Outer: byteOffset must be an integer from 0 to -1, for 80 bytes in 79, not 0/,
  )
  expect(() => outer.read(new Uint8Array(100), 21)).toThrow(RangeError)
})
