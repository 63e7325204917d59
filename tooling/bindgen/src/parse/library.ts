import type { History } from '../spec/history.js'
import type {
  CallbackSpec,
  EnumSpec,
  FieldSpec,
  FieldType,
  FunctionSpec,
  HandleSpec,
  ParameterSpec,
  ScalarSpec,
  StructSpec,
} from '../spec/types.js'
import { scalarBytes } from '../spec/types.js'
import { type AstNode, childrenOf } from './ast.js'
import { type CType, parseType } from './ctypes.js'
import { type Declarations, plainName, type RecordDeclaration } from './declarations.js'
import { directionOf } from './direction.js'
import { type Layouts, spelling } from './layouts.js'
import { handleName, isOpaque, isOpaquePointer, isSignedEnum, lowerInteger, lowerType } from './lower.js'
import { pointeeOf } from './pointee.js'

/** True if the header defines the function's body, so that no library exports it. */
export function isDefinedInHeader(node: AstNode | undefined): boolean {
  return node !== undefined && (node.inline === true || childrenOf(node, 'CompoundStmt').length > 0)
}

/** The result and parameters of a function declaration. */
export function readSignature(
  declarations: Declarations,
  layouts: Layouts,
  node: AstNode,
  history: History,
): Pick<FunctionSpec, 'result' | 'resultCtype' | 'parameters' | 'deprecated'> {
  const text = (node.type as { qualType: string }).qualType
  const resultCtype = text.slice(0, text.indexOf('(')).trim()
  const parameters: ParameterSpec[] = childrenOf(node, 'ParmVarDecl').map((parameter, index) => {
    const name = parameter.name ?? `argument${index}`
    const ctype = (parameter.type as { qualType: string }).qualType
    const lowered = lowerType(declarations, layouts, ctype, true)
    return { name, ctype, lowered, direction: directionOf(declarations, node.name as string, name, ctype, lowered) }
  })
  for (const parameter of parameters) {
    const pointee = pointeeOf(declarations, layouts, node.name as string, parameters, parameter, history)
    if (pointee !== undefined) parameter.pointee = pointee
  }
  const result = lowerType(declarations, layouts, resultCtype, false)
  const deprecated = childrenOf(node, 'DeprecatedAttr').length > 0
  return { result, resultCtype, parameters, ...(deprecated ? { deprecated } : {}) }
}

export function readEnums(declarations: Declarations, wanted: RegExp): EnumSpec[] {
  const enums: EnumSpec[] = []
  for (const declaration of declarations.enums) {
    if (declaration.names.length === 0 || !declaration.names.some((name) => wanted.test(name))) continue
    const name = plainName(declaration.names)
    enums.push({
      name,
      aliases: usefulAliases(declaration.names, name),
      signed: isSignedEnum(declaration.members),
      members: declaration.members.map(([member, value]) => [member, Number(value)]),
    })
  }
  return enums
}

function usefulAliases(names: readonly string[], chosen: string): string[] {
  return [...new Set(names)].filter((name) => name !== chosen && !/_(st|enum|union)$/.test(name)).sort()
}

export function readStructs(declarations: Declarations, layouts: Layouts): StructSpec[] {
  const structs: StructSpec[] = []
  for (const [record, layout] of layouts.all) {
    const name = plainName(record.names)
    const fields: FieldSpec[] = layout.fields.map((field) => {
      const { type, count, size } = readField(declarations, layouts, field.ctype, field.record)
      return {
        name: field.name,
        ctype: field.ctype,
        type,
        offset: field.offset,
        size,
        ...(count === undefined ? {} : { count }),
      }
    })
    const named = !record.nested || record.names.some((entry) => declarations.typedefs.has(entry))
    structs.push({
      name,
      aliases: usefulAliases(record.names, name),
      union: record.union,
      size: layout.size,
      alignment: layout.alignment,
      fields,
      ...(named ? { ctype: spelling(declarations, record) } : {}),
    })
  }
  return structs.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

function readField(
  declarations: Declarations,
  layouts: Layouts,
  ctype: string,
  unnamed: RecordDeclaration | undefined,
): { type: FieldType; count?: number; size: number } {
  if (unnamed === undefined) return readFieldType(declarations, layouts, parseType(ctype))
  const dimensions = [...ctype.matchAll(/\[(\d+)\]/g)].map((match) => Number(match[1]))
  const count = dimensions.length > 0 ? dimensions.reduce((a, b) => a * b, 1) : undefined
  const size = layouts.of(unnamed).size
  return { type: { kind: 'struct', type: plainName(unnamed.names) }, size, ...(count === undefined ? {} : { count }) }
}

function readFieldType(declarations: Declarations, layouts: Layouts, ctype: CType): ReturnType<typeof readField> {
  const { target, chain } = declarations.resolve(ctype)
  switch (target.kind) {
    case 'array': {
      const element = readFieldType(declarations, layouts, target.of)
      return { type: element.type, size: element.size, count: target.count * (element.count ?? 1) }
    }
    case 'integer': {
      const lowered = lowerInteger(target.type, chain)
      const type: FieldType =
        lowered.kind === 'integer' || lowered.kind === 'size' ? { kind: target.type } : (lowered as FieldType)
      return { type, size: scalarBytes(target.type) }
    }
    case 'float':
      return { type: { kind: target.type }, size: scalarBytes(target.type) }
    case 'size':
      return { type: { kind: 'u64' }, size: 8 }
    case 'bool':
      return { type: { kind: 'bool' }, size: 1 }
    case 'enum':
      return {
        type: { kind: 'enum', type: plainName(target.enum.names), signed: isSignedEnum(target.enum.members) },
        size: 4,
      }
    case 'record':
      return { type: { kind: 'struct', type: plainName(target.record.names) }, size: layouts.of(target.record).size }
    case 'callback':
      return { type: chain.length > 0 ? { kind: 'callback', type: handleName(chain) } : { kind: 'pointer' }, size: 8 }
    case 'pointer':
      if (chain.length > 0 && isOpaque(declarations, target.to))
        return { type: { kind: 'handle', type: handleName(chain) }, size: 8 }
      return { type: { kind: 'pointer' }, size: 8 }
    case 'void':
      throw new Error('a field of type void')
  }
}

/** Typedefs of opaque objects, functions and plain numbers. */
export function readNames(
  declarations: Declarations,
  wanted: RegExp,
): { handles: HandleSpec[]; callbacks: CallbackSpec[]; scalars: ScalarSpec[] } {
  const handles: HandleSpec[] = []
  const callbacks: CallbackSpec[] = []
  const scalars: ScalarSpec[] = []
  for (const [name, text] of declarations.typedefs) {
    if (!wanted.test(name) || /^PFN_|_v\d+$/.test(name)) continue
    const { target, chain } = declarations.resolve({ kind: 'name', name, const: false })
    if (target.kind === 'callback') callbacks.push({ name, ctype: text })
    else if (target.kind === 'integer') {
      const lowered = lowerInteger(target.type, chain)
      if (lowered.kind === 'handle') handles.push({ name, ctype: text, brand: name })
      else if (lowered.kind === 'integer')
        scalars.push({ name, ctype: text, type: target.type, ...(lowered.brand === name ? { branded: true } : {}) })
    } else if (isOpaquePointer(chain)) {
      handles.push({ name, ctype: text, brand: name })
    } else if (target.kind === 'pointer' && isOpaque(declarations, target.to)) {
      const tag = (declarations.resolve(target.to).target as { record: RecordDeclaration }).record.names[0] as string
      handles.push({ name, ctype: text, brand: tag.replace(/_st$/, '') })
    }
  }
  return { handles, callbacks, scalars }
}
