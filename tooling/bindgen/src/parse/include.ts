import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { History } from '../spec/history.js'
import type { FunctionSpec } from '../spec/types.js'
import { readGroups } from './groups.js'

/** Folder of headers that stand in for OpenGL's, EGL's and VDPAU's: scalar typedefs alone. */
export const standInHeaders = fileURLToPath(new URL('../../include/', import.meta.url))

export interface HeaderFile {
  name: string
  /** declares more on Windows, which is read as well */
  windows?: boolean
  /** everything in it is for one platform */
  platform?: 'linux'
}

/** C source that includes headers, with what they declare for Windows alone as well. */
export function includeSource(headers: readonly HeaderFile[]): string {
  const lines = headers.flatMap(({ name, windows }) =>
    windows ? ['#define _WIN32 1', `#include <${name}>`, '#undef _WIN32'] : [`#include <${name}>`],
  )
  return `${lines.join('\n')}\n`
}

/** Functions that the text of a header declares, old ABIs and other platforms included. */
export function declaredFunctions(text: string): Set<string> {
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
  const declaration = /\b(?:CUDAAPI|CUDARTAPI|CUDARTAPI_CDECL)\s+(cu\w+)\s*\(/g
  return new Set([...code.matchAll(declaration)].map((match) => match[1] as string))
}

/** Functions that a header declares behind `#ifdef _WIN32`, however conditions nest in there. */
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

/** Header, documentation group and platform of a function, looked up by any of its names. */
export type DeclarationInfo = (names: readonly string[]) => Pick<FunctionSpec, 'header' | 'group' | 'platform'>

/**
 * Header, documentation group and platform of functions.
 * @param ungrouped those that are declared between the groups.
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
