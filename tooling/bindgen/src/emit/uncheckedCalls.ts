import { libraryRecord } from '../../../libraries/index.mjs'
import { type Form, type UncheckedCall, type UncheckedFile, uncheckedCalls } from '../facts/uncheckedCalls.js'
import type { FunctionSpec, LibrarySpecFile, Lowered } from '../spec/types.js'
import { SourceFile } from './source.js'

const calls = '@shoal/ffi/calls'

/** The functions for hot paths, which call without checks: sources keyed by path relative to `packages`. */
export function emitUncheckedCalls(
  specs: readonly LibrarySpecFile[],
  files: readonly UncheckedFile[] = uncheckedCalls,
): Map<string, string> {
  return new Map(
    files.map(({ library, path, functions }) => {
      const spec = specs.find((each) => each.library === library)
      const file = new SourceFile(path)
      for (const call of functions) {
        const entry = spec?.functions.find(({ name }) => name === call.name)
        if (entry === undefined) throw new Error(`${path}: the spec of ${library} has no ${call.name}`)
        emitCall(file, file.use(libraryRecord(library).module, library), entry, call)
      }
      return [path, file.render()]
    }),
  )
}

function emitCall(file: SourceFile, library: string, entry: FunctionSpec, call: UncheckedCall): void {
  const { name, parameters, result } = entry
  const { as: caller = `${name}Unchecked`, inContext, forms = {} } = call
  if (result.kind !== 'enum') throw new Error(`${name} returns no status`)
  for (const known of Object.keys(forms))
    if (!parameters.some((parameter) => parameter.name === known)) throw new Error(`${name} has no ${known}`)
  const declared = new Map<string, string>()
  const lines: string[] = []
  const objects: Fields = {}
  if (inContext) {
    declared.set('context', file.useType(calls, 'U64Halves'))
    const word = `2 * ${file.use(calls, 'contextSlot')}`
    lines.push(`slots[${word}] = context.low`, `slots[${word} + 1] = context.high`)
  }
  for (const [index, parameter] of parameters.entries()) {
    const form = forms[parameter.name] ?? usualForm(parameter.lowered)
    if (form === undefined) throw new Error(`${name}: ${parameter.name} is of a kind that no unchecked function takes`)
    const { name: argument, lowered } = parameter
    if (form === 'number' && usualForm(lowered) !== 'number')
      throw new Error(
        `${name}: ${argument} has 64 bits, and a number of 32 would leave the upper half of the last call`,
      )
    if (Array.isArray(form) || String(form).includes('.')) {
      const paths = [form].flat() as string[]
      const isBigint = paths.length === 1 && usualForm(lowered) !== 'number'
      for (const [half, path] of paths.entries()) {
        declarePath(objects, path.split('.'), isBigint ? 'bigint' : 'number')
        declared.set(path.split('.')[0] as string, '')
        lines.push(
          isBigint ? `${file.use(calls, 'slots64')}[${index}] = ${path}` : `slots[${2 * index + half}] = ${path}`,
        )
      }
    } else {
      const { types, writes } = writer(file, form, argument, index)
      for (const [name, type] of Object.entries(types)) declared.set(name, type)
      lines.push(...writes)
    }
  }
  for (const [object, fields] of Object.entries(objects)) declared.set(object, typeOf(fields))
  file.use(calls, 'slots32')
  file.add(
    `let ${caller}_: ${file.useType(calls, 'NativeCall')} | undefined`,
    `/** \`${name}\` without checks. Returns the status. */`,
    `export function ${caller}(${[...declared].map((each) => each.join(': ')).join(', ')}): number {`,
    `  const call = (${caller}_ ??= ${library}.bind('${entry.lookup}', ${entry.since}, ${parameters.length}))`,
    '  const slots = slots32',
    ...lines.map((line) => `  ${line}`),
    '  return call()',
    '}',
    '',
  )
}

/** The types of an object's fields; a field may be an object itself. */
interface Fields {
  [field: string]: Fields | string
}

function declarePath(fields: Fields, [field = '', ...rest]: readonly string[], type: string): void {
  if (rest.length === 0) fields[field] = type
  else declarePath((fields[field] ??= {}) as Fields, rest, type)
}

function typeOf(fields: Fields | string): string {
  if (typeof fields === 'string') return fields
  return `{ ${Object.entries(fields)
    .map(([name, type]) => `readonly ${name}: ${typeOf(type)}`)
    .join('; ')} }`
}

/** The arguments for a parameter, and the statements that write its slot. */
function writer(
  file: SourceFile,
  form: Form,
  name: string,
  index: number,
): { readonly types: Readonly<Record<string, string>>; readonly writes: readonly string[] } {
  const halves = (low: string, high: string): string[] => [
    `slots[${2 * index}] = ${low}`,
    `slots[${2 * index + 1}] = ${high}`,
  ]
  switch (form) {
    case 'halves':
      return { types: { [name]: file.useType(calls, 'U64Halves') }, writes: halves(`${name}.low`, `${name}.high`) }
    case 'words':
      return {
        types: { [`${name}Low`]: 'number', [`${name}High`]: 'number' },
        writes: halves(`${name}Low`, `${name}High`),
      }
    case 'count':
      return { types: { [name]: 'number' }, writes: halves(name, `${name} / ${2 ** 32}`) }
    case 'bigint':
      return { types: { [name]: 'bigint' }, writes: [`${file.use(calls, 'slots64')}[${index}] = ${name}`] }
    case 'number':
      // C ignores the upper half.
      return { types: { [name]: 'number' }, writes: [`slots[${2 * index}] = ${name}`] }
    default:
      return { types: {}, writes: halves(String(form), '0') }
  }
}

function usualForm(lowered: Lowered): Form | undefined {
  switch (lowered.kind) {
    case 'handle':
    case 'deviceptr':
    case 'callback':
    case 'pointer':
      return 'halves'
    case 'size':
      return 'count'
    case 'enum':
      return 'number'
    case 'integer':
      return lowered.type === 'i64' ? undefined : lowered.type === 'u64' ? 'count' : 'number'
    default:
      return undefined
  }
}
