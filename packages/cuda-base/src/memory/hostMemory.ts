import { cuMemFreeHost } from '@shoal/cuda-sys/driver'
import type { Context } from '../context.js'

/** Frees page-locked memory that could not be put to use. Never throws: the error that led here is the one to report. */
export function freeUnused(context: Context, address: bigint): void {
  try {
    context._release('cuMemFreeHost', () => cuMemFreeHost(address))
  } catch {
    // The memory stays until its context goes.
  }
}
