// The parts of clang's JSON AST that the generator uses.

export interface AstType {
  qualType: string
  desugaredQualType?: string
}

export interface AstNode {
  id: string
  kind: string
  name?: string
  type?: AstType
  inner?: AstNode[]
  tagUsed?: 'struct' | 'union' | 'enum' | 'class'
  completeDefinition?: boolean
  value?: string
  storageClass?: string
  inline?: boolean
  isImplicit?: boolean
  isBitfield?: boolean
  ownedTagDecl?: { id: string; kind: string; name: string }
  decl?: { id: string; kind: string; name: string }
}

/** The children of one kind. */
export function childrenOf(node: AstNode, kind: string): AstNode[] {
  return (node.inner ?? []).filter((child) => child.kind === kind)
}

/** The value of the first descendant that has a constant value. */
export function constantValue(node: AstNode): bigint | undefined {
  for (const child of node.inner ?? []) {
    if (child.kind === 'ConstantExpr' && child.value !== undefined) return BigInt(child.value)
    const nested = constantValue(child)
    if (nested !== undefined) return nested
  }
  return undefined
}
