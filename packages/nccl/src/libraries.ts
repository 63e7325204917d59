import { ensureContextFunctions } from '@shoal/cuda-sys/driver'
import { ncclVersion } from './version.js'

/** Before any call is recorded for another thread: a missing or too old library shows at once, with its version. */
export function loadLibraries(): void {
  ensureContextFunctions()
  ncclVersion()
}
