import { elementAt } from '../operands.js'
import type { LiveSession } from '../queue/liveSession.js'

/** Returns the address of a signal: an element of symmetric `u64` memory. */
export function signalAt(
  live: LiveSession,
  signal: unknown,
  index: number | undefined,
  api: string,
  parameter: string,
  indexName = 'index',
): bigint {
  const { address, dtype } = elementAt(live, signal, index, api, parameter, indexName)
  if (dtype !== 'u64') throw new TypeError(`${api}: ${parameter} must be symmetric memory of u64, not of ${dtype}`)
  return address
}
