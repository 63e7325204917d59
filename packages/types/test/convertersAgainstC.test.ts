import {
  decodeBF16,
  decodeF8E4M3,
  decodeF8E5M2,
  decodeF16,
  encodeBF16,
  encodeF8E4M3,
  encodeF8E5M2,
  encodeF16,
} from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { neighbour, randomDoubles, referenceFormats } from './floatReference.js'
import { cudaInclude, runCxx } from './toolchain.js'

/** Returns all values of the narrow formats, the midpoints between them, their neighbors, and random doubles. */
function inputs(): Float64Array {
  const values: number[] = [0, -0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN]
  for (const [decode, patterns, step] of [
    [decodeF8E4M3, 256, 1],
    [decodeF8E5M2, 256, 1],
    [decodeF16, 65_536, 7],
    [decodeBF16, 65_536, 7],
  ] as const) {
    for (let bits = 0; bits + 1 < patterns; bits += step) {
      const value = decode(bits)
      const middle = (value + decode(bits + 1)) / 2
      values.push(value, middle)
      if (Number.isFinite(middle) && middle !== 0) values.push(neighbour(middle, 1), neighbour(middle, -1))
    }
  }
  for (const [index, format] of Object.values(referenceFormats).entries()) {
    values.push(...randomDoubles(format, 20_000, 91 + index))
  }
  return Float64Array.from(values)
}

const readDoubles = `
  #include <cstdint>
  #include <cstdio>
  #include <cstring>
  #include <vector>
  static std::vector<double> readDoubles() {
    std::vector<double> out;
    double value;
    while (fread(&value, sizeof value, 1, stdin) == 1) out.push_back(value);
    return out;
  }
  static void emit(uint16_t bits) { fwrite(&bits, sizeof bits, 1, stdout); }
`

function words(output: Buffer): Uint16Array {
  return new Uint16Array(output.buffer.slice(output.byteOffset, output.byteOffset + output.byteLength))
}

function sameBits(got: number, wanted: number, decode: (bits: number) => number): boolean {
  return got === wanted || (Number.isNaN(decode(got)) && Number.isNaN(decode(wanted)))
}

describe('converters compared with C', () => {
  it("encode f16 like the compiler's conversion from double to _Float16", ({ skip }) => {
    if (process.arch !== 'x64' && process.arch !== 'arm64') skip(`g++ has no _Float16 on ${process.arch}`)
    const values = inputs()
    const output = words(
      runCxx(
        `${readDoubles}
        int main() {
          for (double value : readDoubles()) {
            _Float16 half = (_Float16)value;
            uint16_t bits;
            memcpy(&bits, &half, sizeof bits);
            emit(bits);
          }
        }`,
        { input: new Uint8Array(values.buffer) },
      ),
    )
    expect(output.length).toBe(values.length)
    const mismatches = [...values.keys()].filter(
      (index) => !sameBits(encodeF16(values[index] as number), output[index] as number, decodeF16),
    )
    expect(mismatches.slice(0, 5).map((index) => values[index])).toEqual([])
  })

  it("encode every format like CUDA's host functions, including NaN bits", ({ skip }) => {
    const include = cudaInclude()
    if ('reason' in include) return skip(include.reason)
    const values = inputs()
    const output = words(
      runCxx(
        `${readDoubles}
        #include <cuda_bf16.h>
        #include <cuda_fp16.h>
        #include <cuda_fp8.h>
        int main() {
          for (double value : readDoubles()) {
            __half_raw half = __double2half(value);
            __nv_bfloat16_raw bfloat = __double2bfloat16(value);
            emit(half.x);
            emit(bfloat.x);
            emit(__nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E4M3));
            emit(__nv_cvt_double_to_fp8(value, __NV_NOSAT, __NV_E4M3));
            emit(__nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E5M2));
            emit(__nv_cvt_double_to_fp8(value, __NV_NOSAT, __NV_E5M2));
          }
        }`,
        { input: new Uint8Array(values.buffer), flags: [`-I${include.folder}`, '-w'] },
      ),
    )
    expect(output.length).toBe(values.length * 6)
    const encoders = [
      ['f16', (value: number) => encodeF16(value)],
      ['bf16', (value: number) => encodeBF16(value)],
      ['f8e4m3 saturating', (value: number) => encodeF8E4M3(value)],
      ['f8e4m3', (value: number) => encodeF8E4M3(value, { saturate: false })],
      ['f8e5m2 saturating', (value: number) => encodeF8E5M2(value)],
      ['f8e5m2', (value: number) => encodeF8E5M2(value, { saturate: false })],
    ] as const
    const mismatches: string[] = []
    for (const [index, value] of values.entries()) {
      for (const [column, [name, encode]] of encoders.entries()) {
        const wanted = output[index * 6 + column] as number
        const got = encode(value)
        if (got !== wanted) mismatches.push(`${name} of ${value}: 0x${got.toString(16)}, not 0x${wanted.toString(16)}`)
      }
    }
    expect(mismatches.slice(0, 8)).toEqual([])
  })
})
