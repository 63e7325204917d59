import type { AstNode } from './ast.js'

/** The location of a declaration. If it comes from a macro, the location where the macro is used. */
export interface Location {
  file: string
  offset: number
}

interface BareLocation {
  offset: number
  file?: string
}

/**
 * The locations of a unit's function declarations. clang omits the file if it equals that of the previously printed
 * location, so all locations must be visited in order.
 */
export function functionLocations(nodes: readonly AstNode[]): Map<AstNode, Location> {
  const found = new Map<AstNode, Location>()
  let file = ''
  const visit = (value: unknown): Location | undefined => {
    if (typeof value !== 'object' || value === null) return undefined
    if (Array.isArray(value)) {
      for (const each of value) visit(each)
      return undefined
    }
    if ('offset' in value) {
      const bare = value as BareLocation
      if (bare.file !== undefined) file = bare.file
      return { file, offset: bare.offset }
    }
    let last: Location | undefined
    let own: Location | undefined
    for (const [key, child] of Object.entries(value)) {
      if (key === 'includedFrom') continue
      // For a location inside a macro, the place of use comes last.
      last = visit(child) ?? last
      if (key === 'loc') own = last
    }
    const node = value as AstNode
    if (node.kind === 'FunctionDecl' && own) found.set(node, own)
    return node.kind === undefined ? last : undefined
  }
  visit(nodes)
  return found
}
