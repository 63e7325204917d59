import { type MemoryPlace, StatusError } from '@shoal/driver'
import type { CaseContext } from '../../../suite.js'

/** CUDA_ERROR_INVALID_VALUE */
export const invalidValue = 1

/** Matches an error of the driver that leaves the context unchanged. */
export function harmless(status: number, api?: string): (error: unknown) => boolean {
  return (error) =>
    error instanceof StatusError &&
    error.status === status &&
    !error.isSticky &&
    (api === undefined || error.api === api)
}

/** Matches a RangeError whose message contains all of these words. */
export function outOfRange(...words: readonly (string | number)[]): (error: unknown) => boolean {
  return (error) => error instanceof RangeError && words.every((word) => error.message.includes(String(word)))
}

export function isPowerOfTwo(value: number): boolean {
  return Number.isInteger(Math.log2(value))
}

/** Returns the places where memory can be created here. */
export function places(t: CaseContext): MemoryPlace[] {
  const found: MemoryPlace[] = [...t.devices]
  if (t.device.attribute('HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED') === 1) found.push('host')
  if (t.device.attribute('HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED') === 1) {
    found.push({ hostNode: Math.max(0, t.device.attribute('HOST_NUMA_ID')) })
  }
  return found
}
