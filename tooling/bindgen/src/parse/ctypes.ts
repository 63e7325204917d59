// Parses the type names that clang prints, such as `const CUgraphNode **` or `void (*)(CUstream, void *)`.

export type CType =
  | { kind: 'pointer'; to: CType; const: boolean }
  | { kind: 'array'; of: CType; count: number; const: boolean }
  | { kind: 'function'; text: string; const: boolean }
  | { kind: 'tag'; tag: 'struct' | 'union' | 'enum'; name: string; const: boolean }
  | { kind: 'name'; name: string; const: boolean }

export function parseType(text: string): CType {
  const source = text.trim()
  if (/\(\*\s*(const)?\s*\)\s*\(/.test(source))
    return { kind: 'function', text: source, const: /\(\*\s*const/.test(source) }
  if (/^[^()]*\([^*]/.test(source) && source.endsWith(')') && !/unnamed|anonymous/.test(source)) {
    return { kind: 'function', text: source, const: false }
  }
  const array = /^(.*?)\s*\[(\d*)\]((?:\[\d*\])*)$/.exec(source)
  if (array) {
    const of = parseType(`${array[1]}${array[3] ?? ''}`)
    return { kind: 'array', of, count: Number(array[2] ?? 0), const: of.const }
  }
  const pointer = /^(.*)\*\s*(const|restrict|__restrict)?$/.exec(source)
  if (pointer) return { kind: 'pointer', to: parseType(pointer[1] as string), const: pointer[2] === 'const' }
  let rest = source
  let isConst = false
  for (;;) {
    const leading = /^(const|volatile)\s+/.exec(rest)
    const trailing = /\s+(const|volatile)$/.exec(rest)
    const qualifier = leading ?? trailing
    if (!qualifier) break
    if (qualifier[1] === 'const') isConst = true
    rest = leading ? rest.slice(qualifier[0].length) : rest.slice(0, -qualifier[0].length)
  }
  const tag = /^(struct|union|enum)\s+(.*)$/.exec(rest)
  if (tag) return { kind: 'tag', tag: tag[1] as 'struct', name: tag[2] as string, const: isConst }
  return { kind: 'name', name: rest, const: isConst }
}
