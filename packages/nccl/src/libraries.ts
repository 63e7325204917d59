import { ensureContextFunctions } from '@shoal/cuda-sys/driver'
import { ncclVersion } from './version.js'

/** Loads the libraries before calls are recorded for another thread, so that a missing or old one throws here. */
export function loadLibraries(): void {
  ensureContextFunctions()
  ncclVersion()
}
