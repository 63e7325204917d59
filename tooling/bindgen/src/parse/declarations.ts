import type { IntegerKind } from '../spec/types.js'
import { type AstNode, childrenOf, constantValue } from './ast.js'
import { type CType, parseType } from './ctypes.js'

export interface EnumDeclaration {
  /** tag and typedef names, in the order of the header */
  names: string[]
  members: [name: string, value: bigint][]
}

export interface RecordDeclaration {
  names: string[]
  union: boolean
  node: AstNode
  complete: boolean
  /** declared inside another record, so C++ cannot name it directly */
  nested: boolean
}

export type Resolved =
  | { kind: 'integer'; type: IntegerKind }
  | { kind: 'float'; type: 'f32' | 'f64' }
  | { kind: 'size' | 'bool' | 'void' | 'callback' }
  | { kind: 'enum'; enum: EnumDeclaration }
  | { kind: 'record'; record: RecordDeclaration }
  | { kind: 'pointer'; to: CType }
  | { kind: 'array'; of: CType; count: number }

export interface ResolvedType {
  target: Resolved
  /** the typedef names that were resolved, outermost first */
  chain: string[]
}

const builtins: Record<string, Resolved> = {
  void: { kind: 'void' },
  char: { kind: 'integer', type: 'i8' },
  'signed char': { kind: 'integer', type: 'i8' },
  'unsigned char': { kind: 'integer', type: 'u8' },
  short: { kind: 'integer', type: 'i16' },
  'unsigned short': { kind: 'integer', type: 'u16' },
  int: { kind: 'integer', type: 'i32' },
  'unsigned int': { kind: 'integer', type: 'u32' },
  // CUDA uses `long` only for reserved space at the end of cudaPointerAttributes. On Windows this struct is shorter,
  // but its fields have the same offsets. NVSHMEM uses both types, but only exists for Linux.
  long: { kind: 'integer', type: 'i64' },
  'unsigned long': { kind: 'integer', type: 'u64' },
  'long long': { kind: 'integer', type: 'i64' },
  'unsigned long long': { kind: 'integer', type: 'u64' },
  float: { kind: 'float', type: 'f32' },
  double: { kind: 'float', type: 'f64' },
  _Bool: { kind: 'bool' },
  bool: { kind: 'bool' },
}

// Fixed-width types are resolved by name: their definition differs between platforms, but their width does not.
const fixed: Record<string, Resolved> = {
  size_t: { kind: 'size' },
  int8_t: { kind: 'integer', type: 'i8' },
  uint8_t: { kind: 'integer', type: 'u8' },
  int16_t: { kind: 'integer', type: 'i16' },
  uint16_t: { kind: 'integer', type: 'u16' },
  int32_t: { kind: 'integer', type: 'i32' },
  uint32_t: { kind: 'integer', type: 'u32' },
  int64_t: { kind: 'integer', type: 'i64' },
  uint64_t: { kind: 'integer', type: 'u64' },
  uintptr_t: { kind: 'integer', type: 'u64' },
  ptrdiff_t: { kind: 'integer', type: 'i64' },
}

/** An index of a translation unit's declarations. Resolves type names. */
export class Declarations {
  readonly typedefs = new Map<string, string>()
  readonly functions = new Map<string, AstNode>()
  readonly enums: EnumDeclaration[] = []
  readonly records: RecordDeclaration[] = []
  readonly #enumByTag = new Map<string, EnumDeclaration>()
  readonly #recordByTag = new Map<string, RecordDeclaration>()
  readonly #byId = new Map<string, EnumDeclaration | RecordDeclaration>()

  constructor(nodes: readonly AstNode[]) {
    for (const node of nodes) {
      if (node.isImplicit) continue
      if (node.kind === 'EnumDecl') this.#addEnum(node)
      else if (node.kind === 'RecordDecl') this.#addRecord(node)
      else if (node.kind === 'FunctionDecl') this.functions.set(node.name as string, node)
      else if (node.kind === 'TypedefDecl') this.#addTypedef(node)
    }
  }

  #addEnum(node: AstNode): void {
    const members: [string, bigint][] = []
    let next = 0n
    for (const member of childrenOf(node, 'EnumConstantDecl')) {
      const value = constantValue(member) ?? next
      members.push([member.name as string, value])
      next = value + 1n
    }
    const declaration: EnumDeclaration = { names: node.name ? [node.name] : [], members }
    this.enums.push(declaration)
    this.#byId.set(node.id, declaration)
    if (node.name) this.#enumByTag.set(node.name, declaration)
  }

  #addRecord(node: AstNode, nested = false): RecordDeclaration {
    const known = node.name ? this.#recordByTag.get(node.name) : undefined
    const record = known ?? {
      names: node.name ? [node.name] : [],
      union: node.tagUsed === 'union',
      node,
      complete: false,
      nested,
    }
    if (!known) this.records.push(record)
    if (node.completeDefinition) {
      record.node = node
      record.complete = true
    }
    this.#byId.set(node.id, record)
    if (node.name) this.#recordByTag.set(node.name, record)
    // In C, a tag declared inside a struct is visible outside of it.
    for (const child of node.inner ?? []) {
      if (child.kind === 'RecordDecl' && child.name) this.#addRecord(child, true)
      else if (child.kind === 'EnumDecl') this.#addEnum(child)
    }
    return record
  }

  #addTypedef(node: AstNode): void {
    const name = node.name as string
    const text = (node.type as { qualType: string }).qualType
    this.typedefs.set(name, text)
    const owned = node.inner?.[0]?.ownedTagDecl
    const anonymous = owned && !owned.name ? this.#byId.get(owned.id) : undefined
    // clang prints an anonymous tag under its first typedef name.
    if (anonymous) {
      if ('members' in anonymous) this.#enumByTag.set(name, anonymous)
      else this.#recordByTag.set(name, anonymous)
    }
    const type = parseType(text)
    if (type.kind !== 'name' && type.kind !== 'tag') return
    // System headers define types by compiler built-ins, which stay unresolved.
    const target = this.#lookUp(type)?.target
    if (!target) return
    if (target.kind === 'enum') target.enum.names.push(name)
    else if (target.kind === 'record') target.record.names.push(name)
  }

  resolve(type: CType): ResolvedType {
    const resolved = this.#lookUp(type)
    if (!resolved) throw new Error(`unknown type ${JSON.stringify(type)}`)
    return resolved
  }

  #lookUp(type: CType): ResolvedType | undefined {
    const chain: string[] = []
    let current = type
    for (;;) {
      switch (current.kind) {
        case 'pointer':
          if (this.#isFunction(current.to)) return { target: { kind: 'callback' }, chain }
          return { target: { kind: 'pointer', to: current.to }, chain }
        case 'array':
          return { target: { kind: 'array', of: current.of, count: current.count }, chain }
        case 'function':
          return { target: { kind: 'callback' }, chain }
        case 'tag': {
          if (current.tag === 'enum') {
            const found = this.#enumByTag.get(current.name)
            return found && { target: { kind: 'enum', enum: found }, chain }
          }
          const found = this.#recordByTag.get(current.name)
          return found && { target: { kind: 'record', record: found }, chain }
        }
        case 'name': {
          const builtin = fixed[current.name] ?? builtins[current.name]
          if (builtin) return { target: builtin, chain }
          const next = this.typedefs.get(current.name)
          if (next === undefined) return undefined
          chain.push(current.name)
          current = parseType(next)
        }
      }
    }
  }

  #isFunction(type: CType): boolean {
    // The typedef of a pointer to a function is no function.
    if (type.kind === 'function') return !type.text.includes('(*')
    if (type.kind !== 'name' || builtins[type.name] || fixed[type.name]) return false
    const next = this.typedefs.get(type.name)
    return next !== undefined && this.#isFunction(parseType(next))
  }
}

/** Removes the suffixes `_st`, `_enum`, `_union` and `_vN` of tags and versioned typedefs. */
export function plainName(names: readonly string[], preferred?: string): string {
  if (preferred) return preferred
  const ordered = [...names].sort((a, b) => rank(a) - rank(b) || names.indexOf(a) - names.indexOf(b))
  return ordered[0] as string
}

function rank(name: string): number {
  if (/_(st|enum|union)$/.test(name)) return 3
  if (/_v\d+(_\d+|_t)?$/.test(name)) return 2
  if (/_t$/.test(name)) return 1
  return 0
}
