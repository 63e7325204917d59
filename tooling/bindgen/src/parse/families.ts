import { readFileSync } from 'node:fs'
import type { FamilySpec, TypeSetSpec } from '../spec/types.js'
import type { AstNode } from './ast.js'
import { preprocess, type Translation } from './clang.js'
import type { Location } from './locations.js'

// NVSHMEM's headers declare most functions by passing a template macro to a macro that repeats it for a list of types.
// The preprocessor shows these lists. The location of a function's declaration shows which list it belongs to.

/** The position of a function in the table of families and types. */
export interface TableEntry {
  family: string
  /** its name, with `{type}` or `{bits}` for the column */
  pattern: string
  /** the column: a type, a size in bits, or `mem` for bytes */
  type: string
}

const repeaters = /^#define (NVSHMEMI_REPT_(?:OPGROUP_)?FOR_(\w+))\(([^)]*)\)/gm
const setName = (macro: string): string => macro.replace(/^NVSHMEMI_REPT_(OPGROUP_)?FOR_/, '')

/** The type lists for which the headers repeat declarations, as expanded by the preprocessor. */
export function readTypeSets(unit: Translation): TypeSetSpec[] {
  const macros = [...preprocess(unit, ['-dM']).matchAll(repeaters)].filter(([, name]) => !/SCOPE/.test(name as string))
  // The repeater of an operation group derives the name of its template; other repeaters take it as an argument.
  const probes = macros.map(([, name, , parameters], index) => {
    const template = (name as string).includes('OPGROUP') ? 'SHOAL' : 'NVSHMEMI_DECL_TYPE_SHOAL'
    const rest = (parameters as string).split(',').slice(1)
    return `SHOAL_SET ${index} ${name}(${[template, ...rest.map(() => 'x')].join(', ')}) SHOAL_END`
  })
  const template = '#define NVSHMEMI_DECL_TYPE_SHOAL(name, ...) SHOAL_COLUMN #name #__VA_ARGS__ ;'
  const output = preprocess({ ...unit, source: `${unit.source}\n${template}\n${probes.join('\n')}\n` })
  const sets: TypeSetSpec[] = []
  for (const [, index, body] of output.matchAll(/SHOAL_SET (\d+) ([\s\S]*?)SHOAL_END/g)) {
    const types = [...(body as string).matchAll(/SHOAL_COLUMN\s+"(\w+)"\s+"([^"]*)"\s*;/g)].map(
      ([, name, rest]): [string, string] => [name as string, ((rest as string).split(',')[0] as string).trim()],
    )
    if (types.length > 0) sets.push({ name: (macros[Number(index)] as RegExpMatchArray)[2] as string, types })
  }
  return sets.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The table: the families with their type lists, and the position of each function. */
export function readFamilies(
  functions: ReadonlyMap<string, AstNode>,
  locations: ReadonlyMap<AstNode, Location>,
  sets: readonly TypeSetSpec[],
): { families: FamilySpec[]; entries: Map<string, TableEntry> } {
  const columns = new Set(sets.flatMap(({ types }) => types.map(([name]) => name)))
  const uses = new Map<string, { pattern: string; set: string | undefined; types: string[] }>()
  const entries = new Map<string, TableEntry>()
  const texts = new Map<string, string>()
  for (const [name, node] of functions) {
    const split = splitName(name, columns)
    const location = locations.get(node)
    if (split === undefined || location === undefined) continue
    const text = texts.get(location.file) ?? readFileSync(location.file, 'utf8')
    texts.set(location.file, text)
    const macro = /^\w+/.exec(text.slice(location.offset))?.[0] ?? ''
    const key = `${split.pattern} ${location.file} ${location.offset}`
    const use = uses.get(key) ?? { pattern: split.pattern, set: setName(macro), types: [] }
    uses.set(key, use)
    use.types.push(split.type)
    entries.set(name, { ...split, family: familyOf(split.pattern) })
  }

  const families = new Map<string, FamilySpec>()
  for (const { pattern, set, types } of uses.values()) {
    const wanted = types.join()
    const found =
      sets.find((each) => each.name === set) ?? sets.find((each) => each.types.map(([name]) => name).join() === wanted)
    // A macro that is used only once. Its declarations are not a row of the table.
    if (found === undefined) continue
    if (found.types.map(([name]) => name).join() !== wanted)
      throw new Error(`${pattern} is declared for ${wanted}, which is not the list ${found.name}`)
    const family = families.get(familyOf(pattern)) ?? { name: familyOf(pattern), patterns: [] }
    families.set(family.name, family)
    const row = family.patterns.find((each) => each.pattern === pattern)
    if (row === undefined) family.patterns.push({ pattern, sets: [found.name] })
    else if (!row.sets.includes(found.name)) row.sets.push(found.name)
  }
  for (const name of functions.keys()) {
    const plain = familyOf(name)
    const family = families.get(plain)
    if (entries.has(name) || family === undefined || !bytes.test(name)) continue
    family.patterns.push({ pattern: name, sets: [] })
    entries.set(name, { family: plain, pattern: name, type: 'mem' })
  }
  return { families: [...families.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), entries }
}

const bytes = /(?<=^nvshmemx?_(?:put|get|alltoall|broadcast|fcollect))mem(?=_|$)/

/** `nvshmemx_{type}_put_on_stream`, `nvshmemx_put{bits}_on_stream` and `nvshmemx_putmem_on_stream` are one family. */
function familyOf(pattern: string): string {
  return pattern
    .replace(bytes, '')
    .replace(/^nvshmemx?_/, '')
    .replace(/\{type\}_|\{bits\}/, '')
}

function splitName(name: string, columns: ReadonlySet<string>): { pattern: string; type: string } | undefined {
  const typed = /^(nvshmemx?_)([a-z0-9]+)(_.*)$/.exec(name)
  if (typed && columns.has(typed[2] as string))
    return { pattern: `${typed[1]}{type}${typed[3]}`, type: typed[2] as string }
  const sized = /^(nvshmemx?_i?(?:put|get))(\d+)(_.*|)$/.exec(name)
  if (sized && columns.has(sized[2] as string))
    return { pattern: `${sized[1]}{bits}${sized[3]}`, type: sized[2] as string }
  return undefined
}

/** All names in a row of the table. */
export function expandPattern(pattern: string, sets: readonly string[], known: readonly TypeSetSpec[]): string[] {
  if (!/\{(type|bits)\}/.test(pattern)) return [pattern]
  const columns = sets.flatMap((set) => known.find(({ name }) => name === set)?.types.map(([type]) => type) ?? [])
  return [...new Set(columns)].map((type) => pattern.replace(/\{(type|bits)\}/, type))
}
