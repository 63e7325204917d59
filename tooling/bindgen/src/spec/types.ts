import { type DeviceLibraryName, type LibraryName, libraries } from '../../../libraries/index.mjs'

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
  /** `brand` names a scalar that no plain number may stand in for */
  | { kind: 'integer'; type: IntegerKind; brand?: string }
  | { kind: 'size' }
  | { kind: 'bool' }
  | { kind: 'float'; type: 'f32' | 'f64' }
  | { kind: 'struct'; type: string; size: number; alignment: number }
  | { kind: 'void' }

export type IntegerKind = 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64'

/** Bytes of a number of a kind. */
export function scalarBytes(kind: IntegerKind | 'f32' | 'f64'): number {
  return Number(kind.slice(1)) / 8
}

export interface ParameterSpec {
  name: string
  /** C type as the header spells it */
  ctype: string
  lowered: Lowered
  direction: Direction
  /** of a pointer: what it points to, where C says how large that is */
  pointee?: PointeeSpec
}

/** The least memory behind a pointer. */
export interface PointeeSpec {
  /** bytes of one element; for an array of fixed length, of all */
  size: number
  /** as many elements as another argument says, none perhaps */
  array?: true
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
  /** family of the table that the header generates the function from, and its column there: a type, a size or `mem` */
  family?: string
  type?: string
  /** where the function exists, when not everywhere */
  platform?: 'linux' | 'win32'
  /** header that declares it */
  header?: string
  /** for an earlier ABI: the name under which the newest one is exported */
  supersededBy?: string
  /** why a library of the right version and platform may lack it */
  reason?: string
  /** for a function that no header declares: how its prototype is known */
  undeclared?: string
}

export interface EnumSpec {
  name: string
  aliases: string[]
  /** branded scalar that the members are values of */
  brand?: string
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
  /** plain numbers are refused by the type checker: the value names an object */
  branded?: boolean
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
  /** only earlier ABIs use it */
  earlier?: true
}

/** A struct that carries its size and version because it grew. */
export interface VersionedStructSpec {
  struct: string
  /** macro that initialises it */
  initializer: string
  /** what the macro puts into the fields other than size and version; further fields are zero */
  initial: [field: string, value: number][]
  /** layouts that only grew at the end, oldest first; a new run starts where one did not */
  runs: {
    /** whether programs initialise it with the macro; otherwise with zeros */
    initialized: boolean
    layouts: { since: number; struct: string }[]
  }[]
}

export interface ConstantSpec {
  name: string
  /** integers as decimal text, so that 64-bit values survive JSON */
  value: string
  kind: 'number' | 'bigint' | 'float'
  /** handle or scalar type that the header casts the value to */
  type?: string
}

/** Functions that a header declares for a list of types at once. */
export interface FamilySpec {
  name: string
  /** names with `{type}` or `{bits}` where the column stands, and the lists of columns that each is declared for */
  patterns: { pattern: string; sets: string[] }[]
}

/** A list of types, or of sizes in bits, of the header. */
export interface TypeSetSpec {
  name: string
  /** name in function names, C type; a size has no C type */
  types: [name: string, ctype: string][]
}

/** What a header declares or a library exports, and is not bound. */
export interface UnboundSpec {
  /** name, or a pattern as in {@link FamilySpec} */
  symbol: string
  /** names that a pattern stands for */
  count?: number
  exported: boolean
  nature?: 'data' | 'function' | 'inline' | 'device'
  reason: string
}

/** A real library whose exported symbols the spec was compared with. */
export interface ExportsSpec {
  /** such as `libcuda of driver 580.159` */
  title: string
  /** the list in `abi`, without `.symbols.txt` */
  file: string
  /** version of its headers: what came later is not expected in the list */
  version: number
}

export type { DeviceLibraryName, LibraryName }

/** All libraries. */
export const libraryNames: readonly LibraryName[] = libraries.map(({ id }) => id)

/** The libraries that work on devices: the software device has a twin of each. */
export const deviceLibraryNames = libraries
  .filter(({ places }) => places.sim !== undefined)
  .map(({ id }) => id) as readonly DeviceLibraryName[]

/** The spec of a library that works on devices. */
export type DeviceSpecFile = LibrarySpecFile & { library: DeviceLibraryName }

export function isDeviceSpec(spec: LibrarySpecFile): spec is DeviceSpecFile {
  return (deviceLibraryNames as readonly string[]).includes(spec.library)
}

export interface LibrarySpecFile {
  format: 1
  library: LibraryName
  /** version of the headers, as the library counts versions */
  headerVersion: number
  exports: ExportsSpec
  headers: string[]
  /** where the library exists, when not everywhere */
  platform?: 'linux'
  functions: FunctionSpec[]
  enums: EnumSpec[]
  structs: StructSpec[]
  handles: HandleSpec[]
  callbacks: CallbackSpec[]
  scalars: ScalarSpec[]
  constants: ConstantSpec[]
  families?: FamilySpec[]
  typeSets?: TypeSetSpec[]
  unbound?: UnboundSpec[]
  versionedStructs?: VersionedStructSpec[]
}
