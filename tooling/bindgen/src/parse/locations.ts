import type { AstNode } from './ast.js'

/** Where a declaration stands: for one that a macro expands to, where that macro is used. */
export interface Location {
  file: string
  offset: number
}

interface BareLocation {
  offset: number
  file?: string
}

/**
 * Locations of the function declarations of a unit. clang leaves out the file of a location where it is that of the
 * location printed before, so every one of them is visited, in order.
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
      // Of a location inside a macro the place of use comes last.
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
