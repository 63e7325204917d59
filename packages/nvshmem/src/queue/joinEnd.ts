import { onAbort } from '@shoal/ffi'
import { AbortedError, requireWaitOptions, TimeoutError, type WaitOptions } from '@shoal/types'

/** Waits for an end that another call started. These limits end only this wait. */
export function joinEnd(ending: Promise<void>, wait: WaitOptions | undefined, operation: string): Promise<void> {
  if (wait === undefined) return ending
  return new Promise((resolve, reject) => {
    const { signal, timeout } = requireWaitOptions(wait, operation)
    let timer: NodeJS.Timeout | undefined
    if (timeout !== undefined) timer = setTimeout(() => reject(new TimeoutError({ operation, timeout })), timeout)
    const leave = onAbort(signal, () => reject(new AbortedError({ operation, cause: signal?.reason })))
    const settle = (): void => {
      clearTimeout(timer)
      leave()
    }
    ending.then(resolve, reject).finally(settle)
  })
}
