import { addon, callEngine } from './addon/load.js'

/**
 * Restores the original flags of the SIGINT and SIGTERM handlers.
 *
 * Call it after a library that replaces these handlers temporarily. NVRTC restores Node's handlers with wrong flags:
 * they then run forever, and only SIGKILL ends the process.
 */
export function restoreSignals(): void {
  if (callEngine() === 'addon') addon().restoreSignals()
}
