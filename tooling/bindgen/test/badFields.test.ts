import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { codecsOf } from '../src/proof/brokenLayouts.js'
import { builtFile, type Codec, ffiFile, loadFfi, loadSysPackage, sysPackages } from '../src/proof/packages.js'
import { show } from '../src/proof/results.js'
import type { FieldSpec, FieldType, StructSpec } from '../src/spec/types.js'
import { root } from './environment.js'
import { specs } from './proof.js'

// Every field of every struct refuses values that C cannot hold, with the names of the struct and the field.

const objects = [{}, new Date(0), Symbol('s'), () => 0]

function badNumbers(low: number, high: number): unknown[] {
  return [...objects, [], null, '1', true, 1n, 1.5, Number.NaN, Infinity, low - 1, high + 1]
}

/** Values that an element of this kind must refuse. */
function badElements(type: FieldType): unknown[] {
  switch (type.kind) {
    case 'struct':
      return [null, 5, 5n, 'text', true, { noSuchField: 1 }]
    case 'bool':
      return [...objects, [], null, 0, 1, 'true', 1n]
    case 'f32':
    case 'f64':
      return [...objects, [], null, '1', true, 1n]
    case 'i64':
      return [...objects, null, '1', true, 1.5, Number.NaN, 2n ** 63n, -(2n ** 63n) - 1n]
    case 'u64':
    case 'deviceptr':
      return [...objects, null, '1', true, 1.5, Number.NaN, 2n ** 64n, -1n]
    case 'handle':
    case 'callback':
    case 'pointer':
      return [...objects, '1', true, 1.5, Number.NaN, 2n ** 64n, -1n, new Uint8Array(8)]
    case 'enum':
      return type.signed ? badNumbers(-(2 ** 31), 2 ** 31 - 1) : badNumbers(0, 2 ** 32 - 1)
    default: {
      const bits = Number(type.kind.slice(1))
      return type.kind.startsWith('u')
        ? badNumbers(0, 2 ** bits - 1)
        : badNumbers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    }
  }
}

function badValues({ type, count }: FieldSpec): unknown[] {
  if (count === undefined) return badElements(type)
  // Bytes are 0 … 255, even if C calls them signed.
  const element: FieldType = type.kind === 'i8' ? { kind: 'u8' } : type
  const tooLong = Array.from({ length: count + 1 }, () => undefined)
  return [5, 5n, 'text', null, true, () => 0, tooLong, ...badElements(element).map((bad) => [bad])]
}

/** Describes how a codec mishandles bad values of a field. */
function complaints(codec: Codec, entry: StructSpec, field: FieldSpec): string[] {
  const named =
    field.type.kind === 'struct' ? [`${entry.name}.${field.name}`, field.type.type] : [`${entry.name}.${field.name}`]
  return badValues(field).flatMap((bad) => {
    const what = `${entry.name}.${field.name} = ${show(bad)}`
    const found: string[] = []
    for (const [how, take] of [
      ['write', () => codec.write(new Uint8Array(codec.size), { [field.name]: bad })],
      ['allocate', () => codec.allocate({ [field.name]: bad })],
      [
        'view',
        () => {
          codec.view(new Uint8Array(codec.size))[field.name] = bad
        },
      ],
    ] as const) {
      try {
        take()
        found.push(`${what}: ${how} took it`)
      } catch (error) {
        const isRight =
          (error instanceof TypeError || error instanceof RangeError) &&
          named.some((name) => error.message.includes(name))
        if (!isRight) found.push(`${what}: ${how} threw ${String(error)}`)
      }
    }
    return found
  })
}

/** Describes how a codec mishandles memory that is too small for the struct. */
function memoryComplaints(codec: Codec): string[] {
  const places: [ArrayBufferView | ArrayBuffer, number | undefined][] = [
    [new Uint8Array(codec.size - 1), undefined],
    [new ArrayBuffer(codec.size - 1), undefined],
    [new DataView(new ArrayBuffer(codec.size + 8), 9), undefined],
    [new Uint8Array(codec.size + 7), 8],
    [new Uint8Array(codec.size + 8), -1],
    [new Uint8Array(codec.size + 8), 0.5],
    [new Uint8Array(codec.size + 8), Number.NaN],
  ]
  return places.flatMap(([memory, offset]) =>
    (
      [
        () => codec.read(memory, offset),
        () => codec.view(memory, offset),
        () => codec.write(memory, {}, offset),
      ] as const
    ).flatMap((take) => {
      try {
        take()
        return [`${codec.name} at ${offset} of ${memory.byteLength} bytes: was taken`]
      } catch (error) {
        const isRight = error instanceof RangeError && error.message.includes(codec.name)
        return isRight ? [] : [`${codec.name} at ${offset} of ${memory.byteLength} bytes: ${String(error)}`]
      }
    }),
  )
}

describe.each(specs.filter(({ structs }) => structs.length > 0).map((spec) => [spec.library, spec] as const))(
  '%s',
  (library, spec) => {
    test('every field of every struct refuses bad values by name', async () => {
      const { exports } = await loadSysPackage(join(root, builtFile(sysPackages[library].specifier)), library)
      const found = spec.structs.flatMap((entry) =>
        entry.fields.flatMap((field) => complaints(exports[entry.name] as Codec, entry, field)),
      )
      expect(found.slice(0, 20)).toEqual([])
    })

    test('every struct refuses memory that is too small', async () => {
      const { exports } = await loadSysPackage(join(root, builtFile(sysPackages[library].specifier)), library)
      const found = spec.structs.flatMap(({ name }) => memoryComplaints(exports[name] as Codec))
      expect(found.slice(0, 20)).toEqual([])
    })

    test('a field that accepts too much is reported', async () => {
      // cuBLAS has no such integers.
      const kind = spec.structs.some(({ fields }) => fields.some((field) => field.type.kind === 'u32')) ? 'u32' : 'f32'
      const small = ({ type, count }: FieldSpec): boolean => type.kind === kind && count === undefined
      const entry = spec.structs.find(({ fields, size }) => size >= 8 && fields.some(small)) as StructSpec
      const field = entry.fields.find(small) as FieldSpec
      const wide = entry.fields.map((each) =>
        each === field ? { ...each, offset: 0, type: { kind: 'u64' as const } } : each,
      )
      const structs = spec.structs.map((each) => (each === entry ? { ...each, fields: wide } : each))
      const codec = codecsOf(await loadFfi(join(root, ffiFile)), { ...spec, structs }).get(entry.name) as Codec
      expect(complaints(codec, entry, field).length).toBeGreaterThan(0)
    })
  },
)
