import { type DType, defineStruct, dtypes, type FieldType, type StructFields, type StructType } from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { randomWords } from './floatReference.js'
import { cudaInclude, runCxx } from './toolchain.js'

// C++ types of the same size and alignment as CUDA's.
const cxxTypes: Record<DType | 'ptr', string> = {
  i8: 'int8_t',
  u8: 'uint8_t',
  i16: 'int16_t',
  u16: 'uint16_t',
  i32: 'int32_t',
  u32: 'uint32_t',
  i64: 'int64_t',
  u64: 'uint64_t',
  f16: 'uint16_t',
  bf16: 'uint16_t',
  f8e4m3: 'uint8_t',
  f8e5m2: 'uint8_t',
  f32: 'float',
  f64: 'double',
  complex64: 'Complex64',
  complex128: 'Complex128',
  bool: 'bool',
  ptr: 'void*',
}

const headerTypes: Partial<typeof cxxTypes> = {
  f16: '__half',
  bf16: '__nv_bfloat16',
  f8e4m3: '__nv_fp8_e4m3',
  f8e5m2: '__nv_fp8_e5m2',
  complex64: 'cuFloatComplex',
  complex128: 'cuDoubleComplex',
}

function declarator(type: FieldType, name: string, names: typeof cxxTypes): string {
  if (Array.isArray(type)) return declarator(type[0] as FieldType, `${name}[${type[1]}]`, names)
  if (typeof type === 'string') return `${names[type]} ${name};`
  return `${(type as StructType).name} ${name};`
}

interface Sample {
  readonly struct: StructType
  readonly align: number
}

/** Returns structs of random fields. Later structs contain earlier ones. */
function samples(count: number): Sample[] {
  const next = randomWords(4242)
  const scalars: readonly FieldType[] = [...dtypes, 'ptr']
  const out: Sample[] = []
  for (let index = 0; index < count; index += 1) {
    const fields: { [name: string]: FieldType } = {}
    const fieldCount = 1 + (next() % 9)
    for (let field = 0; field < fieldCount; field += 1) {
      let type = scalars[next() % scalars.length] as FieldType
      const inner = out[next() % Math.max(out.length, 1)]
      if (inner !== undefined && next() % 5 === 0) type = inner.struct
      if (next() % 4 === 0) type = [type, 1 + (next() % 4)]
      if (next() % 10 === 0) type = [type, 1 + (next() % 3)]
      fields[`field${field}`] = type
    }
    const align = next() % 6 === 0 ? 2 ** (next() % 6) : 1
    out.push({ struct: defineStruct(`Struct${index}`, fields as StructFields, { align }), align })
  }
  return out
}

function program(structs: readonly Sample[], prologue: string, names: typeof cxxTypes): string {
  const declarations = structs.map(({ struct, align }) => {
    // In C++ an alignas below the natural alignment is an error. In Shoal it is a minimum alignment.
    const alignas = align > 1 && align >= struct.alignment ? `alignas(${align}) ` : ''
    return `struct ${alignas}${struct.name} { ${struct.fields.map((f) => declarator(f.type, f.name, names)).join(' ')} };`
  })
  const prints = structs.map(({ struct }) => {
    const offsets = struct.fields.map((field) => `offsetof(${struct.name}, ${field.name})`)
    const numbers = [`sizeof(${struct.name})`, `alignof(${struct.name})`, ...offsets]
    return `printf("%zu${' %zu'.repeat(numbers.length - 1)}\\n", ${numbers.join(', ')});`
  })
  return `
    #include <cstddef>
    #include <cstdint>
    #include <cstdio>
    ${prologue}
    ${declarations.join('\n')}
    int main() { ${prints.join('\n')} }
  `
}

function layouts(structs: readonly Sample[]): string[] {
  return structs.map(({ struct }) =>
    [struct.bytes, struct.alignment, ...struct.fields.map((field) => field.offset)].join(' '),
  )
}

describe('struct layout compared with g++', () => {
  it("has the compiler's size, alignment and offsets for 400 random structs", () => {
    const structs = samples(400)
    const prologue = `
      struct alignas(8) Complex64 { float re, im; };
      struct alignas(16) Complex128 { double re, im; };
    `
    const output = runCxx(program(structs, prologue, cxxTypes))
      .toString()
      .trim()
      .split('\n')
    expect(layouts(structs)).toEqual(output)
  })

  it("agrees with CUDA's vector types", ({ skip }) => {
    const include = cudaInclude()
    if ('reason' in include) return skip(include.reason)
    const structs = samples(60)
    const prologue = ['cuComplex', 'cuda_bf16', 'cuda_fp16', 'cuda_fp8']
      .map((name) => `#include <${name}.h>`)
      .join('\n')
    const source = program(structs, prologue, { ...cxxTypes, ...headerTypes })
    const output = runCxx(source, { flags: [`-I${include.folder}`, '-w'] })
      .toString()
      .trim()
      .split('\n')
    expect(layouts(structs)).toEqual(output)
  })

  it('writes values where C++ reads them', () => {
    const Inner = defineStruct('Inner', { flag: 'bool', ratio: 'f64' })
    const Outer = defineStruct('Outer', { a: 'i8', inner: [Inner, 2], c: ['u16', 3], p: 'ptr', z: 'complex64' })
    const input = Outer.encode({
      a: -7,
      inner: [
        { flag: true, ratio: 0.5 },
        { flag: false, ratio: -1e300 },
      ],
      c: [1, 2, 65535],
      p: 0x1234_5678_9abcn,
      z: { re: 1.25, im: -8 },
    })
    const output = runCxx(
      `
      #include <cinttypes>
      #include <cstdio>
      struct alignas(8) Complex64 { float re, im; };
      struct Inner { bool flag; double ratio; };
      struct Outer { int8_t a; Inner inner[2]; uint16_t c[3]; void* p; Complex64 z; };
      int main() {
        Outer o;
        if (fread(&o, 1, sizeof o + 1, stdin) != sizeof o) return 1;
        printf("%d %d %g %d %g %u %u %u %p %g %g", o.a, o.inner[0].flag, o.inner[0].ratio, o.inner[1].flag,
               o.inner[1].ratio, o.c[0], o.c[1], o.c[2], o.p, o.z.re, o.z.im);
      }`,
      { input },
    ).toString()
    expect(output).toBe('-7 1 0.5 0 -1e+300 1 2 65535 0x123456789abc 1.25 -8')
  })
})
