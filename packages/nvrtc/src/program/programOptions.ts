import { isPlainObject, type OptionKeys, requireText, wrongType } from '@shoal/types'
import { requireTexts } from '../options/encode.js'

/** What belongs to a source. */
export interface ProgramOptions {
  /** The name that messages and line numbers carry. Default: `'program.cu'`. */
  readonly name?: string | undefined
  /** Headers as texts, by the names that they are included by. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Kernels and variables whose names in the code are asked for, templates above all: `'scale<float>'`, `'&table'`. */
  readonly nameExpressions?: readonly string[] | undefined
}

/** The keys of {@link ProgramOptions}. */
export const programKeys: OptionKeys<ProgramOptions> = { name: true, headers: true, nameExpressions: true }

/** Each of them, checked. @throws TypeError, RangeError */
export function readProgramOptions(
  { name = 'program.cu', headers = {}, nameExpressions = [] }: ProgramOptions,
  api: string,
): Required<{ readonly [Key in keyof ProgramOptions]: NonNullable<ProgramOptions[Key]> }> {
  return {
    name: requireText(name, api, 'name'),
    headers: Object.freeze(requireHeaders(headers, api)),
    nameExpressions: Object.freeze([...new Set(requireTexts(nameExpressions, api, 'nameExpressions'))]),
  }
}

function requireHeaders(value: unknown, api: string): Record<string, string> {
  if (!isPlainObject(value)) throw wrongType(api, 'headers', "a plain object such as { 'a.h': '#define A 1' }", value)
  const headers: Record<string, string> = {}
  for (const [name, text] of Object.entries(value)) {
    requireText(name, api, 'headers')
    if (typeof text !== 'string' || text.includes('\0'))
      throw wrongType(api, `headers.${name}`, 'a string without NUL characters', text)
    headers[name] = text
  }
  return headers
}
