import { openSync } from 'node:fs'

/** What a handle of memory may say. */
export const memoryFacts = {
  content: 'memory',
  byteLength: 2 ** 21,
  deviceUuid: 'GPU-01234567-89ab-cdef-0123-456789abcdef',
} as const

/** An open descriptor. */
export const openNull = (): number => openSync('/dev/null', 'r')
