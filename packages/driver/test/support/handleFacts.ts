import { openSync } from 'node:fs'

/** Valid facts of a memory handle. */
export const memoryFacts = {
  content: 'memory',
  byteLength: 2 ** 21,
  deviceUuid: 'GPU-01234567-89ab-cdef-0123-456789abcdef',
} as const

/** Returns an open descriptor. */
export const openNull = (): number => openSync('/dev/null', 'r')
