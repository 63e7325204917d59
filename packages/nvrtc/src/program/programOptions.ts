import { isPlainObject, type OptionKeys, requireText, wrongType } from '@shoal/types'
import { requireTexts } from '../options/encode.js'

/** Options of a program. */
export interface ProgramOptions {
  /** Name of the source in messages and line information. Default: `'program.cu'`. */
  readonly name?: string | undefined
  /** Header texts, by the name in the `#include`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Kernels and variables whose lowered names to record, usually templates: `'scale<float>'`, `'&table'`. */
  readonly nameExpressions?: readonly string[] | undefined
}

/** Keys of {@link ProgramOptions}. */
export const programKeys: OptionKeys<ProgramOptions> = { name: true, headers: true, nameExpressions: true }

/** Returns checked program options. @throws TypeError, RangeError */
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
