import type { Environment } from './environment.js'

/**
 * A number of bytes as NVSHMEM reads it from a variable: what C's `%lf%c` finds, with K, M, G or T.
 *
 * @param unreadable where the variable is set, and to something else.
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
