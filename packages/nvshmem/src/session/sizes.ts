/** A number of bytes as NVSHMEM reads it from a variable: with K, M, G or T. */
export function sizeOf(environment: Readonly<NodeJS.ProcessEnv>, name: string, otherwise: number): number {
  const [, number, unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)/i.exec(environment[name] ?? '') ?? []
  return number === undefined
    ? otherwise
    : Math.floor(Number(number) * 1024 ** ' kmgt'.indexOf(unit.toLowerCase() || ' '))
}
