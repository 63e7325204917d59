import { AbortedError } from '@shoal/types'

/** What ends a wait for a compiler. */
export interface Abortable {
  /**
   * Rejects the promise with `AbortedError`. A compilation that has not begun never does; one that has cannot be
   * stopped: it goes on to its end on its thread, and its result is kept where a cache is.
   */
  readonly signal?: AbortSignal | undefined
}

/**
 * Starts some work and waits for it, but no longer than until the signal fires; `discard` gets what comes of it
 * afterwards.
 */
export async function untilAborted<T>(
  start: () => Promise<T>,
  signal: AbortSignal | undefined,
  operation: string,
  discard: (late: T) => void = () => undefined,
): Promise<T> {
  if (signal === undefined) return start()
  const aborted = (): AbortedError => new AbortedError({ operation, cause: signal.reason })
  if (signal.aborted) throw aborted()
  const work = start()
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(aborted())
      // Nobody waits for it, and its errors are nobody's.
      work.then(discard).catch(() => undefined)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
