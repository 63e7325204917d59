import type { FunctionSpec, LibrarySpecFile, Lowered, ParameterSpec } from '../spec/types.js'
import { areaOf, manualPage } from './areas.js'
import { SourceFile } from './source.js'
import type { SymbolTable } from './symbols.js'
import { versionText } from './versions.js'

const calls = '@shoal/ffi/calls'

/** Words that cannot be parameter names in TypeScript modules. */
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
  /** TypeScript type of the parameter */
  type: string
  /** statement that checks the value and writes its slot */
  put: (slot: string, value: string) => string
}

/** Writes the functions of a library, one file an area. */
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
  const library = file.use('../../library.js', symbols.libraryVariable)
  const parameters = entry.parameters.map((parameter) => ({
    ...parameter,
    name: reserved.has(parameter.name) ? `${parameter.name}_` : parameter.name,
  }))
  const documentation = documentFunction(spec, entry, parameters)
  if (parameters.some(({ lowered }) => lowered.kind === 'float')) {
    emitForeign(file, library, symbols, entry, parameters, documentation)
    return
  }
  const kinds = parameters.map((parameter) => marshal(file, symbols, entry, parameter))
  const signature = parameters
    .map((parameter, index) => `${parameter.name}: ${(kinds[index] as Marshalling).type}`)
    .join(', ')
  const returnsStruct = entry.result.kind === 'struct'
  const first = returnsStruct ? 1 : 0
  const byValue = parameters.some(({ lowered }) => lowered.kind === 'struct')
  const body: string[] = []
  if (byValue) {
    const shapes = parameters
      .map(({ lowered }) => (lowered.kind === 'struct' ? `{ bytes: ${lowered.size} }` : "'word'"))
      .join(', ')
    file.use(calls, 'lowerCall')
    file.add(`let ${entry.name}_layout: ${file.useType(calls, 'CallLayout')} | undefined`)
    body.push(`const layout = (${entry.name}_layout ??= lowerCall([${shapes}]))`)
  }
  parameters.forEach((parameter, index) => {
    if (parameter.lowered.kind === 'struct') {
      body.push(`layout.putStruct(${index}, ${parameter.name}, '${entry.name}', '${parameter.name}')`)
    } else {
      body.push(
        (kinds[index] as Marshalling).put(byValue ? `layout.slot(${index})` : String(index + first), parameter.name),
      )
    }
  })
  const slots = byValue ? 'layout.slotCount' : String(parameters.length + first)
  const bound = `${entry.name}_`
  const bind = (method: string, kind?: string) =>
    `(${bound} ??= ${library}.${method}('${entry.lookup}', ${entry.since}, ${slots}${kind ? `, '${kind}'` : ''}))()`
  const result = emitResult(file, symbols, entry, bind)
  if (returnsStruct) body.unshift(...result.before)
  body.push(...result.lines)
  file.add(
    `let ${bound}: ${file.useType(calls, result.big ? 'BigNativeCall' : 'NativeCall')} | undefined`,
    documentation,
    `export function ${entry.name}(${signature}): ${result.type} {`,
    ...body.map((line) => `  ${line}`),
    '}',
    '',
  )
}

interface EmittedResult {
  type: string
  before: string[]
  lines: string[]
  big: boolean
}

function emitResult(
  file: SourceFile,
  symbols: SymbolTable,
  entry: FunctionSpec,
  bind: (method: string, kind?: string) => string,
): EmittedResult {
  const plain = (type: string, line: string, big = false): EmittedResult => ({ type, before: [], lines: [line], big })
  const { result } = entry
  switch (result.kind) {
    case 'void':
      // `void` keeps the line from being read as a continuation of the one before.
      return plain('void', `void ${bind('bind', 'void')}`)
    case 'enum': {
      const type = symbols.typeName(file, result.type)
      return plain(type, `return ${bind('bind', result.signed ? undefined : 'u32')} as ${type}`)
    }
    case 'integer':
      if (result.type === 'i64' || result.type === 'u64')
        return plain('bigint', `return ${bind('bindBig', result.type)}`, true)
      return plain('number', `return ${bind('bind', result.type.startsWith('u') ? 'u32' : undefined)}`)
    case 'size':
      return plain('bigint', `return ${bind('bindBig', 'u64')}`, true)
    case 'pointer':
    case 'cstring':
      return plain('bigint', `return ${bind('bindBig', 'pointer')}`, true)
    case 'handle':
    case 'deviceptr':
    case 'callback': {
      const type = symbols.typeName(file, result.type)
      return plain(type, `return ${bind('bindBig', 'pointer')} as ${type}`, true)
    }
    case 'struct': {
      // The caller hands the address of the result as a hidden first argument; AArch64 has a register of its own for it.
      if (result.size <= 16)
        throw new Error(
          `${entry.name}: a result of ${result.size} bytes comes back in registers, which is not supported`,
        )
      const codec = symbols.valueName(file, result.type)
      file.use('../../../hiddenResult.js', 'hiddenResult')
      return {
        type: symbols.typeName(file, result.type),
        before: [`const result = hiddenResult(${codec}.size, '${entry.name}')`],
        lines: [`void ${bind('bind', 'void')}`, `return ${codec}.read(result)`],
        big: false,
      }
    }
    default:
      throw new Error(`${entry.name}: a result of kind ${result.kind} is not supported`)
  }
}

function marshal(file: SourceFile, symbols: SymbolTable, entry: FunctionSpec, parameter: ParameterSpec): Marshalling {
  const { lowered } = parameter
  const simple = (type: string, put: string): Marshalling => {
    file.use(calls, put)
    return { type, put: (slot, value) => `${put}(${slot}, ${value}, '${entry.name}', '${parameter.name}')` }
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
      return simple(file.useType(calls, 'PointerArgument'), 'putPointer')
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
    case 'void':
      throw new Error(`${entry.name}: a parameter of kind ${lowered.kind} does not go through the block`)
  }
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

const foreignTypes: Record<string, string> = {
  i32: 'int',
  u32: 'unsigned int',
  i16: 'short',
  u16: 'unsigned short',
  i8: 'int8_t',
  u8: 'uint8_t',
}

/** Functions with floats by value: their arguments travel in other registers than the block's, so koffi makes the call. */
function emitForeign(
  file: SourceFile,
  library: string,
  symbols: SymbolTable,
  entry: FunctionSpec,
  parameters: readonly ParameterSpec[],
  documentation: string,
): void {
  const types: string[] = []
  const signature: string[] = []
  const checks: string[] = []
  parameters.forEach((parameter, index) => {
    const { lowered, name } = parameter
    if (lowered.kind === 'float') {
      file.use('../../../floats.js', 'requireFloat')
      types.push(lowered.type === 'f32' ? 'float' : 'double')
      signature.push(`${name}: number`)
      checks.push(`requireFloat(${name}, '${entry.name}', '${name}')`)
      return
    }
    const { type, put } = marshal(file, symbols, entry, parameter)
    signature.push(`${name}: ${type}`)
    // Written to the block for its check alone.
    checks.push(put(String(index), name))
    if (lowered.kind === 'handle') types.push('void *')
    else if (lowered.kind === 'integer' && foreignTypes[lowered.type]) types.push(foreignTypes[lowered.type] as string)
    else throw new Error(`${entry.name}: ${lowered.kind} beside a float is not supported`)
  })
  const returned = symbols.typeName(file, (entry.result as { type: string }).type)
  const prototype = `int %s(${types.join(', ')})`
  file.add(
    `let ${entry.name}_: ${file.useType('@shoal/ffi', 'ForeignFunction')} | undefined`,
    documentation,
    `export function ${entry.name}(${signature.join(', ')}): ${returned} {`,
    ...checks.map((line) => `  ${line}`),
    `  return (${entry.name}_ ??= ${library}.bindForeign('${entry.lookup}', ${entry.since}, '${prototype}'))(${parameters.map(({ name }) => name).join(', ')}) as ${returned}`,
    '}',
    '',
  )
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
      earlier.length > 0 ? `; with other parameters since ${versionText(spec.library, earlier[0] as number)}` : ''
    lines.push(`@since ${versionText(spec.library, entry.since)}${history}`)
  }
  if (entry.otherMajors)
    lines.push(
      `@remarks Another signature in libcudart ${entry.otherMajors.join(' and ')}, where it throws VersionTooOldError.`,
    )
  if (entry.reason) lines.push(`@remarks ${entry.reason}`)
  else if (entry.platform) lines.push(`@remarks On ${platformNames[entry.platform]} alone.`)
  if (entry.supersededBy) lines.push(`@deprecated An earlier ABI, superseded by {@link ${entry.supersededBy}}.`)
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

/** `T name`, with the name in its place for pointers. */
function declare(ctype: string, name: string): string {
  if (ctype.includes('(*)')) return ctype.replace('(*)', `(*${name})`)
  return ctype.endsWith('*') ? `${ctype}${name}` : `${ctype} ${name}`
}
