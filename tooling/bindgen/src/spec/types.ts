// The spec: everything the generator knows about one library, as plain data.

export type Direction = 'in' | 'out' | 'inout'

/** How a C value is carried: in an argument slot, or, for structs and floats, some other way. */
export type Lowered =
  | { kind: 'handle'; type: string }
  | { kind: 'deviceptr'; type: string }
  | { kind: 'callback'; type: string }
  | { kind: 'enum'; type: string; signed: boolean }
  | { kind: 'pointer' }
  | { kind: 'cstring' }
  | { kind: 'integer'; type: IntegerKind }
  | { kind: 'size' }
  | { kind: 'bool' }
  | { kind: 'float'; type: 'f32' | 'f64' }
  | { kind: 'struct'; type: string; size: number; alignment: number }
  | { kind: 'void' }

export type IntegerKind = 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64'

export interface ParameterSpec {
  name: string
  /** C type as the header spells it */
  ctype: string
  lowered: Lowered
  direction: Direction
}

export interface FunctionSpec {
  /** exported name: the C base name */
  name: string
  /** symbol in the library's export table of the ABI that was typed */
  symbol: string
  /** name to look the function up by: for the driver the name that cuGetProcAddress knows */
  lookup: string
  /** version that introduced the ABI typed here, as the library counts versions; 0 where the headers do not say */
  since: number
  /** first version of any ABI of this function, and every later one */
  versions: number[]
  /** exported symbol of the per-thread-default-stream variant */
  perThreadSymbol?: string
  /** first version of that variant */
  perThreadSince?: number
  deprecated?: boolean
  /** documentation group of the header, e.g. CUDA_MEM */
  group: string
  result: Lowered
  resultCtype: string
  parameters: ParameterSpec[]
  /** majors of the library where the signature is another one */
  otherMajors?: number[]
  /** where the function exists, when not everywhere */
  platform?: 'linux' | 'win32'
}

export interface EnumSpec {
  name: string
  aliases: string[]
  signed: boolean
  members: [name: string, value: number][]
}

export interface HandleSpec {
  name: string
  /** C type behind the name */
  ctype: string
  /** names that share a brand are the same type to C */
  brand: string
}

export interface CallbackSpec {
  name: string
  ctype: string
}

export interface ScalarSpec {
  name: string
  ctype: string
  type: IntegerKind
}

export type FieldType =
  | { kind: IntegerKind | 'f32' | 'f64' | 'bool' | 'pointer' }
  | { kind: 'handle' | 'deviceptr' | 'callback'; type: string }
  | { kind: 'enum'; type: string; signed: boolean }
  | { kind: 'struct'; type: string }

export interface FieldSpec {
  name: string
  ctype: string
  type: FieldType
  offset: number
  /** size of one element */
  size: number
  /** number of elements of an array (several dimensions multiplied out) */
  count?: number
}

export interface StructSpec {
  name: string
  aliases: string[]
  union: boolean
  size: number
  alignment: number
  fields: FieldSpec[]
  /** C expression that names the type; absent for nested types without a name */
  ctype?: string
}

export interface ConstantSpec {
  name: string
  /** integers as decimal text, so that 64-bit values survive JSON */
  value: string
  kind: 'number' | 'bigint' | 'float'
  /** handle or scalar type that the header casts the value to */
  type?: string
}

export interface LibrarySpecFile {
  format: 1
  library: 'driver' | 'runtime' | 'nccl'
  /** version of the headers, as the library counts versions */
  headerVersion: number
  headers: string[]
  functions: FunctionSpec[]
  enums: EnumSpec[]
  structs: StructSpec[]
  handles: HandleSpec[]
  callbacks: CallbackSpec[]
  scalars: ScalarSpec[]
  constants: ConstantSpec[]
}
