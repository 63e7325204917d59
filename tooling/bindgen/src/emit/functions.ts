import type { FunctionSpec, LibrarySpecFile, Lowered, ParameterSpec } from '../spec/types.js'
import { areaOf, manualPage } from './areas.js'
import { libraryModule } from './places.js'
import { SourceFile } from './source.js'
import type { SymbolTable } from './symbols.js'
import { sinceText } from './versions.js'

const calls = '@shoal/ffi/calls'

/** Reserved words, which cannot be parameter names in TypeScript modules. */
const reserved = new Set([
  'function',
  'export',
  'import',
  'in',
  'new',
  'default',
  'class',
  'enum',
  'package',
  'interface',
  'arguments',
  'eval',
])

interface Marshalling {
  /** the parameter's TypeScript type */
  type: string
  /** generates the statement that checks the value and writes its slot */
  put: (slot: string, value: string) => string
}

/** Emits the functions of a library, one file per area. */
export function emitFunctions(spec: LibrarySpecFile, symbols: SymbolTable): SourceFile[] {
  const files = new Map<string, SourceFile>()
  for (const entry of spec.functions) {
    const area = areaOf(spec.library, entry)
    const file = files.get(area) ?? new SourceFile(`functions/${area}.gen.ts`)
    files.set(area, file)
    emitFunction(file, spec, symbols, entry)
  }
  return [...files.values()]
}

function emitFunction(file: SourceFile, spec: LibrarySpecFile, symbols: SymbolTable, entry: FunctionSpec): void {
  const library = file.use(`../${libraryModule(spec.library)}`, symbols.libraryVariable)
  const parameters = entry.parameters.map((parameter) => ({
    ...parameter,
    name: reserved.has(parameter.name) ? `${parameter.name}_` : parameter.name,
  }))
  const documentation = documentFunction(spec, entry, parameters)
  const kinds = parameters.map((parameter) => marshal(file, symbols, entry, parameter))
  const signature = parameters
    .map((parameter, index) => `${parameter.name}: ${(kinds[index] as Marshalling).type}`)
    .join(', ')
  const hasLayout = parameters.some(({ lowered }) => lowered.kind === 'struct' || lowered.kind === 'float')
  const body: string[] = []
  if (hasLayout) {
    const shapes = parameters.map(({ lowered }) => shapeOf(symbols, entry, lowered)).join(', ')
    const result = entry.result.kind === 'struct' ? `, undefined, ${entry.result.size}` : ''
    file.use(calls, 'lowerCall')
    file.add(`let ${entry.name}_layout: ${file.useType(calls, 'CallLayout')} | undefined`)
    body.push(`const layout = (${entry.name}_layout ??= lowerCall([${shapes}]${result}))`)
  }
  parameters.forEach((parameter, index) => {
    if (parameter.lowered.kind === 'struct') {
      body.push(`layout.putStruct(${index}, ${parameter.name}, '${entry.name}', '${parameter.name}')`)
    } else {
      body.push((kinds[index] as Marshalling).put(hasLayout ? `layout.slot(${index})` : String(index), parameter.name))
    }
  })
  const layout = hasLayout ? 'layout' : String(parameters.length)
  const bound = `${entry.name}_`
  const bind = (method: string, kind?: string) =>
    `(${bound} ??= ${library}.${method}('${entry.lookup}', ${entry.since}, ${layout}${kind ? `, ${kind}` : ''}))()`
  const result = emitResult(file, symbols, entry, bind)
  body.push(result.line)
  file.add(
    `let ${bound}: ${file.useType(calls, result.call)} | undefined`,
    documentation,
    `export function ${entry.name}(${signature}): ${result.type} {`,
    ...body.map((line) => `  ${line}`),
    '}',
    '',
  )
}

/** The argument of `lowerCall` that describes a parameter. */
function shapeOf(symbols: SymbolTable, entry: FunctionSpec, lowered: Lowered): string {
  if (lowered.kind === 'float') return "'float'"
  if (lowered.kind !== 'struct') return "'word'"
  requireIntegers(symbols, entry, lowered)
  return `{ bytes: ${lowered.size} }`
}

/** The call engine passes structs by value in integer registers. Floating-point members would need other registers. */
function requireIntegers(symbols: SymbolTable, entry: FunctionSpec, lowered: Lowered & { kind: 'struct' }): void {
  if (lowered.alignment > 8 || symbols.hasFloats(lowered.type))
    throw new Error(`${entry.name}: ${lowered.type} by value has members that do not go in integer registers`)
}

interface EmittedResult {
  type: string
  line: string
  /** type of the bound function */
  call: 'NativeCall' | 'BigNativeCall' | 'StructNativeCall'
}

function emitResult(
  file: SourceFile,
  symbols: SymbolTable,
  entry: FunctionSpec,
  bind: (method: string, kind?: string) => string,
): EmittedResult {
  const number = (type: string, kind: string | undefined, cast = ''): EmittedResult => ({
    type,
    line: `return ${bind('bind', kind && `'${kind}'`)}${cast}`,
    call: 'NativeCall',
  })
  const big = (type: string, kind: string, cast = ''): EmittedResult => ({
    type,
    line: `return ${bind('bindBig', `'${kind}'`)}${cast}`,
    call: 'BigNativeCall',
  })
  const { result } = entry
  switch (result.kind) {
    case 'void':
      // `void` prevents the line from being parsed as a continuation of the previous line.
      return { type: 'void', line: `void ${bind('bind', "'void'")}`, call: 'NativeCall' }
    case 'enum': {
      const type = symbols.typeName(file, result.type)
      return number(type, result.signed ? undefined : 'u32', ` as ${type}`)
    }
    case 'integer': {
      if (result.type === 'i64' || result.type === 'u64') return big('bigint', result.type)
      const brand = result.brand === undefined ? undefined : symbols.typeName(file, result.brand)
      const kind = result.type === 'i32' ? undefined : result.type
      return number(brand ?? 'number', kind, brand === undefined ? '' : ` as ${brand}`)
    }
    case 'float':
      return number('number', result.type)
    case 'bool':
      return number('boolean', 'bool', ' !== 0')
    case 'size':
      return big('bigint', 'u64')
    case 'pointer':
    case 'cstring':
      return big('bigint', 'pointer')
    case 'handle':
    case 'deviceptr':
    case 'callback': {
      const type = symbols.typeName(file, result.type)
      return big(type, 'pointer', ` as ${type}`)
    }
    case 'struct': {
      requireIntegers(symbols, entry, result)
      const codec = symbols.valueName(file, result.type)
      return {
        type: symbols.typeName(file, result.type),
        line: `return ${codec}.read(${bind('bindStruct', String(result.size))})`,
        call: 'StructNativeCall',
      }
    }
  }
}

function marshal(file: SourceFile, symbols: SymbolTable, entry: FunctionSpec, parameter: ParameterSpec): Marshalling {
  const { lowered } = parameter
  const simple = (type: string, put: string, more = ''): Marshalling => {
    file.use(calls, put)
    return { type, put: (slot, value) => `${put}(${slot}, ${value}, '${entry.name}', '${parameter.name}'${more})` }
  }
  switch (lowered.kind) {
    case 'handle':
    case 'callback':
      return simple(`${symbols.typeName(file, lowered.type)} | null`, 'putHandle')
    case 'deviceptr':
      return simple(symbols.typeName(file, lowered.type), 'putHandle')
    case 'enum':
      return simple(symbols.typeName(file, lowered.type), lowered.signed ? 'putI32' : 'putU32')
    case 'pointer':
      return marshalPointer(file, parameter, simple)
    case 'cstring':
      return simple(`string | ${file.useType(calls, 'PointerArgument')}`, 'putCString')
    case 'size':
      return simple(file.useType(calls, 'SizeArgument'), 'putSize')
    case 'bool':
      return simple('boolean', 'putBool')
    case 'integer':
      return marshalInteger(file, symbols, lowered, simple)
    case 'struct':
      file.useType('@shoal/ffi', 'NativeMemory')
      return { type: 'ArrayBufferView | NativeMemory', put: () => '' }
    case 'float':
      return simple('number', lowered.type === 'f32' ? 'putF32' : 'putF64')
    case 'void':
      throw new Error(`${entry.name}: a parameter of kind void`)
  }
}

/** A pointer to a target of known size is checked to have at least that much memory. */
function marshalPointer(
  file: SourceFile,
  { pointee }: ParameterSpec,
  simple: (type: string, put: string, more?: string) => Marshalling,
): Marshalling {
  const type = file.useType(calls, 'PointerArgument')
  if (pointee === undefined) return simple(type, 'putPointer')
  return simple(type, pointee.array ? 'putArray' : 'putPointer', `, ${pointee.size}`)
}

function marshalInteger(
  file: SourceFile,
  symbols: SymbolTable,
  lowered: Lowered & { kind: 'integer' },
  simple: (type: string, put: string) => Marshalling,
): Marshalling {
  if (lowered.type === 'u64') return simple(file.useType(calls, 'SizeArgument'), 'putSize')
  if (lowered.type === 'i64') return simple(file.useType(calls, 'SignedArgument'), 'putI64')
  const type = lowered.brand === undefined ? 'number' : symbols.typeName(file, lowered.brand)
  return simple(type, `put${lowered.type.toUpperCase()}`)
}

const platformNames = { linux: 'Linux', win32: 'Windows' } as const

function documentFunction(spec: LibrarySpecFile, entry: FunctionSpec, parameters: readonly ParameterSpec[]): string {
  const list = parameters.map(({ ctype, name }) => declare(ctype, name)).join(', ')
  const lines = [
    `\`${entry.resultCtype}${entry.resultCtype.endsWith('*') ? '' : ' '}${entry.symbol}(${list || 'void'})\``,
    '',
  ]
  for (const { name, direction, lowered } of parameters) {
    lines.push(`@param ${name} - ${direction === 'inout' ? 'in and out' : direction}${describe(lowered)}`)
  }
  if (entry.since > 0) {
    const earlier = entry.versions.filter((version) => version < entry.since)
    const history =
      earlier.length > 0 ? `; with other parameters since ${sinceText(spec.library, earlier[0] as number)}` : ''
    lines.push(`@since ${sinceText(spec.library, entry.since)}${history}`)
  }
  if (entry.otherMajors)
    lines.push(
      `@remarks Another signature in libcudart ${entry.otherMajors.join(' and ')}, where it throws VersionTooOldError.`,
    )
  if (entry.reason) lines.push(`@remarks ${entry.reason}`)
  else if (entry.platform) lines.push(`@remarks On ${platformNames[entry.platform]} alone.`)
  if (entry.supersededBy) lines.push(`@deprecated An earlier ABI, superseded by {@link ${entry.supersededBy}}.`)
  if (entry.undeclared) lines.push(`@remarks ${entry.undeclared}`)
  if (entry.deprecated) lines.push('@deprecated by the vendor')
  const page = manualPage(spec.library, entry)
  if (page) lines.push(`@see ${page}`)
  return ['/**', ...lines.map((line) => (line === '' ? ' *' : ` * ${line}`)), ' */'].join('\n')
}

function describe(lowered: Lowered): string {
  switch (lowered.kind) {
    case 'struct':
      return `, \`${lowered.type}\` by value: ${lowered.size} bytes`
    case 'callback':
      return ', address of a C function'
    default:
      return ''
  }
}

/** `T name`. In function pointer types, the name goes inside the parentheses. */
function declare(ctype: string, name: string): string {
  if (ctype.includes('(*)')) return ctype.replace('(*)', `(*${name})`)
  return ctype.endsWith('*') ? `${ctype}${name}` : `${ctype} ${name}`
}
