import type { Addon } from '../addon/contract.js'

/** Set while calls are recorded for another thread: then no argument may live in the JavaScript heap. */
export const recording: { addon: Addon | undefined } = { addon: undefined }

/** What an asynchronous `record` does after its first `await` would no longer be recorded. @throws TypeError */
export function refuseAsynchronous(result: unknown, api: string): void {
  if (!(result instanceof Promise)) return
  result.catch(() => undefined)
  throw new TypeError(`${api}: record must be a function that is not asynchronous`)
}
