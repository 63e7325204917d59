import type { Environment } from './environment.js'

/**
 * Parses a number of bytes as NVSHMEM does: C's `%lf%c` with K, M, G or T.
 *
 * @param unreadable result for a variable that cannot be parsed.
 */
export function sizeOf(
  environment: Environment,
  name: keyof Environment,
  otherwise: number,
  unreadable: number = otherwise,
): number {
  const text = environment[name]
  if (text === undefined) return otherwise
  const [, number, unit = ''] = /^\s*(\+?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(.?)/is.exec(text) ?? []
  const power = ['', 'k', 'm', 'g', 't'].indexOf(unit.toLowerCase())
  return number === undefined || power < 0 ? unreadable : Math.ceil(Number(number) * 1024 ** power)
}
