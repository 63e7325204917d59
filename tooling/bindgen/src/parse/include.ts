import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { History } from '../spec/history.js'
import type { FunctionSpec } from '../spec/types.js'
import { readGroups } from './groups.js'

/** The folder of substitutes for the headers of OpenGL, EGL and VDPAU. They only contain scalar typedefs. */
export const standInHeaders = fileURLToPath(new URL('../../include/', import.meta.url))

export interface HeaderFile {
  name: string
  /** has further declarations for Windows, which are read as well */
  windows?: boolean
  /** everything in it is for this platform */
  platform?: 'linux'
}

/** C source that includes headers, also with their declarations for Windows. */
export function includeSource(headers: readonly HeaderFile[]): string {
  const lines = headers.flatMap(({ name, windows }) =>
    windows ? ['#define _WIN32 1', `#include <${name}>`, '#undef _WIN32'] : [`#include <${name}>`],
  )
  return `${lines.join('\n')}\n`
}

/** The functions that a header's text declares, including old ABIs and other platforms. */
export function declaredFunctions(text: string): Set<string> {
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
  const declaration = /\b(?:CUDAAPI|CUDARTAPI|CUDARTAPI_CDECL)\s+(cu\w+)\s*\(/g
  return new Set([...code.matchAll(declaration)].map((match) => match[1] as string))
}

/** The functions that a header declares behind `#ifdef _WIN32`, with any nested conditions. */
function windowsFunctions(text: string): Set<string> {
  const conditions: boolean[] = []
  const lines = text.split('\n').filter((line) => {
    const directive = /^\s*#\s*(if\w*|endif)\b\s*(\w*)/.exec(line)
    if (directive?.[1] === 'endif') conditions.pop()
    else if (directive) conditions.push(directive[1] === 'ifdef' && directive[2] === '_WIN32')
    return conditions.includes(true)
  })
  return declaredFunctions(lines.join('\n'))
}

/** Returns the header, documentation group and platform of a function, by any of its names. */
export type DeclarationInfo = (names: readonly string[]) => Pick<FunctionSpec, 'header' | 'group' | 'platform'>

/**
 * Reads the header, documentation group and platform of functions.
 * @param ungrouped functions that are declared outside of any group
 */
export function readDeclarationInfo(
  include: string,
  files: readonly HeaderFile[],
  ungrouped: ReadonlySet<string>,
  history: History,
): DeclarationInfo {
  const headers = files.map((file) => {
    const text = readFileSync(join(include, file.name), 'utf8')
    return { ...file, declared: declaredFunctions(text), onWindows: windowsFunctions(text), groups: readGroups(text) }
  })
  return (names) => {
    const header = headers.find(({ declared }) => names.some((name) => declared.has(name)))
    if (header === undefined) throw new Error(`no header has the text of ${names[0]}`)
    const group = names.map((name) => header.groups.get(name)).find((found) => found !== undefined)
    const [name = ''] = names
    if (group === undefined && !names.some((each) => ungrouped.has(each)))
      history.guess(name, `${name} stands in no documentation group`, undefined)
    const platform = names.some((name) => header.onWindows.has(name)) ? 'win32' : header.platform
    return { header: header.name, group: group ?? '', ...(platform === undefined ? {} : { platform }) }
  }
}
