import { type DeviceLibraryName, type LibraryName, libraries } from '../../../libraries/index.mjs'

// The spec: everything the generator knows about one library, as plain data.

export type Direction = 'in' | 'out' | 'inout'

/** How a C value is passed: in an argument slot or, for structs and floats, in another way. */
export type Lowered =
  | { kind: 'handle'; type: string }
  | { kind: 'deviceptr'; type: string }
  | { kind: 'callback'; type: string }
  | { kind: 'enum'; type: string; signed: boolean }
  | { kind: 'pointer' }
  | { kind: 'cstring' }
  /** `brand` names a scalar for which a plain number is not accepted */
  | { kind: 'integer'; type: IntegerKind; brand?: string }
  | { kind: 'size' }
  | { kind: 'bool' }
  | { kind: 'float'; type: 'f32' | 'f64' }
  | { kind: 'struct'; type: string; size: number; alignment: number }
  | { kind: 'void' }

export type IntegerKind = 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64'

/** The size of a number in bytes. */
export function scalarBytes(kind: IntegerKind | 'f32' | 'f64'): number {
  return Number(kind.slice(1)) / 8
}

export interface ParameterSpec {
  name: string
  /** the C type as the header writes it */
  ctype: string
  lowered: Lowered
  direction: Direction
  /** for a pointer: its target, if the C type has a size */
  pointee?: PointeeSpec
}

/** The minimum memory behind a pointer. */
export interface PointeeSpec {
  /** size of one element; for an array of fixed length, of the whole array */
  size: number
  /** set if another argument has the number of elements, which may be zero */
  array?: true
}

export interface FunctionSpec {
  /** the exported name: the C base name */
  name: string
  /** the exported symbol of the ABI that this entry describes */
  symbol: string
  /** the name for lookups; for the driver, the name that cuGetProcAddress knows */
  lookup: string
  /** the version that introduced this ABI, in the library's numbering; 0 if the headers do not say */
  since: number
  /** the first version of any ABI of this function, and every later one */
  versions: number[]
  /** the exported symbol of the per-thread default stream variant */
  perThreadSymbol?: string
  /** the first version of that variant */
  perThreadSince?: number
  deprecated?: boolean
  /** the header's documentation group, such as CUDA_MEM */
  group: string
  result: Lowered
  resultCtype: string
  parameters: ParameterSpec[]
  /** majors of the library with another signature */
  otherMajors?: number[]
  /** the family in the header's table, and the column: a type, a size or `mem` */
  family?: string
  type?: string
  /** the platform, if the function does not exist on all */
  platform?: 'linux' | 'win32'
  /** the header that declares it */
  header?: string
  /** for an earlier ABI: the name under which the newest ABI is exported */
  supersededBy?: string
  /** why a library of the right version and platform may lack it */
  reason?: string
  /** for a function that no header declares: how its prototype is known */
  undeclared?: string
}

export interface EnumSpec {
  name: string
  aliases: string[]
  /** the branded scalar of the members */
  brand?: string
  signed: boolean
  members: [name: string, value: number][]
}

export interface HandleSpec {
  name: string
  /** the C type of the name */
  ctype: string
  /** names with equal brands are one type in C */
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
  /** the value identifies an object, so the type checker refuses plain numbers */
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
  /** number of array elements (the product of all dimensions) */
  count?: number
}

export interface StructSpec {
  name: string
  aliases: string[]
  union: boolean
  size: number
  alignment: number
  fields: FieldSpec[]
  /** C expression for the type; absent for anonymous nested types */
  ctype?: string
  /** only used by earlier ABIs */
  earlier?: true
}

/** A struct that carries its size and version because it grew. */
export interface VersionedStructSpec {
  struct: string
  /** the macro that initialises it */
  initializer: string
  /** the macro's values for fields other than size and version; further fields are zero */
  initial: [field: string, value: number][]
  /** layouts that only grew at the end, oldest first; any other change starts a new run */
  runs: {
    /** true if programs initialise it with the macro, false if with zeros */
    initialized: boolean
    layouts: { since: number; struct: string }[]
  }[]
}

export interface ConstantSpec {
  name: string
  /** integers are decimal text, because JSON cannot hold 64-bit values */
  value: string
  kind: 'number' | 'bigint' | 'float'
  /** the handle or scalar type that the header casts the value to */
  type?: string
}

/** Functions that a header declares for a list of types. */
export interface FamilySpec {
  name: string
  /** names with `{type}` or `{bits}` for the column, and the lists of columns for which each is declared */
  patterns: { pattern: string; sets: string[] }[]
}

/** A list of types, or of sizes in bits, in the header. */
export interface TypeSetSpec {
  name: string
  /** the name in function names, and the C type; a size has no C type */
  types: [name: string, ctype: string][]
}

/** A declaration or an exported symbol that is not bound. */
export interface UnboundSpec {
  /** a name, or a pattern as in {@link FamilySpec} */
  symbol: string
  /** number of names that match a pattern */
  count?: number
  exported: boolean
  nature?: 'data' | 'function' | 'inline' | 'device'
  reason: string
}

/** The real library whose exports were compared with the spec. */
export interface ExportsSpec {
  /** for example `libcuda of driver 580.159` */
  title: string
  /** the list in `abi`, without `.symbols.txt` */
  file: string
  /** the version of its headers; later functions are not expected in the list */
  version: number
}

export type { DeviceLibraryName, LibraryName }

/** All libraries. */
export const libraryNames: readonly LibraryName[] = libraries.map(({ id }) => id)

/** The libraries that use devices. The software device has a version of each. */
export const deviceLibraryNames = libraries
  .filter(({ places }) => places.sim !== undefined)
  .map(({ id }) => id) as readonly DeviceLibraryName[]

/** The libraries of a GPU host: those above, and those that the software device lacks. */
export const hostLibraryNames: readonly LibraryName[] = libraries
  .filter(({ places }) => places.worksWithoutDevice !== true)
  .map(({ id }) => id)

/** The spec of a library that uses devices. */
export type DeviceSpecFile = LibrarySpecFile & { library: DeviceLibraryName }

export function isDeviceSpec(spec: LibrarySpecFile): spec is DeviceSpecFile {
  return (deviceLibraryNames as readonly string[]).includes(spec.library)
}

export interface LibrarySpecFile {
  format: 1
  library: LibraryName
  /** version of the headers, in the library's numbering */
  headerVersion: number
  exports: ExportsSpec
  headers: string[]
  /** the platform, if the library does not exist on all */
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
