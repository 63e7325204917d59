import { addon, callEngine } from './addon/load.js'

/**
 * Gives the handlers of SIGINT and SIGTERM the flags back that they had at first. To be called behind a library that
 * puts its own there for a while: NVRTC gives those of Node back such that they run for ever, and nothing but SIGKILL
 * ends the process.
 */
export function restoreSignals(): void {
  if (callEngine() === 'addon') addon().restoreSignals()
}
