import type { Addon } from '../addon/contract.js'

/** Set while calls are recorded for another thread; arguments then must not live in the JavaScript heap. */
export const recording: { addon: Addon | undefined } = { addon: undefined }

/** Refuses an asynchronous `record`, because calls after its first `await` are not recorded. @throws TypeError */
export function refuseAsynchronous(result: unknown, api: string): void {
  if (!(result instanceof Promise)) return
  result.catch(() => undefined)
  throw new TypeError(`${api}: record must be a function that is not asynchronous`)
}
