import { type DType, dtypeInfo, outOfRange, wrongType } from '@shoal/types'

/**
 * Kinds of a tensor's memory, named after `DLDeviceType`: `cpu`, `cuda`, page-locked (`cudaHost`) or managed
 * (`cudaManaged`).
 */
export type TensorDeviceType = 'cpu' | 'cuda' | 'cudaHost' | 'cudaManaged'

export const deviceTypeCodes: { readonly [T in TensorDeviceType]: number } = {
  cpu: 1,
  cuda: 2,
  cudaHost: 3,
  cudaManaged: 13,
}

/** Values of `DLDataTypeCode`. */
const codes = { int: 0, uint: 1, float: 2, bfloat: 4, complex: 5, bool: 6, f8e4m3: 10, f8e5m2: 12 } as const

function codeOf(dtype: DType): number {
  if (dtype === 'bf16') return codes.bfloat
  if (dtype === 'bool' || dtype === 'f8e4m3' || dtype === 'f8e5m2') return codes[dtype]
  if (dtype.startsWith('complex')) return codes.complex
  return dtype.startsWith('i') ? codes.int : dtype.startsWith('u') ? codes.uint : codes.float
}

/** Encodes a `DLDataType` of one lane: code, bits << 8, lanes << 16. */
export function typeWord(dtype: DType): number {
  return codeOf(dtype) | ((dtypeInfo(dtype).bytes * 8) << 8) | (1 << 16)
}

const all: readonly DType[] = [
  ...(['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64', 'f16', 'bf16', 'f8e4m3', 'f8e5m2'] as const),
  ...(['f32', 'f64', 'complex64', 'complex128', 'bool'] as const),
]
const dtypesByWord = new Map(all.map((dtype) => [typeWord(dtype), dtype]))

/** Returns the dtype of a `DLDataType`. @throws RangeError for several lanes; TypeError for an unknown type */
export function dtypeOfWord(code: number, bits: number, lanes: number, api: string): DType {
  if (lanes !== 1) throw outOfRange(api, 'capsule.dtype.lanes', '1: vectors have a dimension of their own', lanes)
  const dtype = dtypesByWord.get(code | (bits << 8) | (lanes << 16))
  if (dtype === undefined) {
    throw wrongType(api, 'capsule.dtype', 'a type that has a dtype here', `code ${code} with ${bits} bits`)
  }
  return dtype
}

/** Returns the device type of a code. @throws TypeError */
export function deviceTypeOf(code: number, api: string): TensorDeviceType {
  for (const [name, known] of Object.entries(deviceTypeCodes)) if (known === code) return name as TensorDeviceType
  throw wrongType(api, 'capsule.device', 'memory of the host or of CUDA', `device type ${code} of DLPack`)
}
