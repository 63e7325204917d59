import { attachSuppressed } from '../attach.js'

/** Errors of the group that is open on this thread. */
let failures: { readonly error: unknown }[] = []

export function note(error: unknown): void {
  if (!failures.some((failure) => failure.error === error)) failures.push({ error })
}

export function hasFailed(): boolean {
  return failures.length > 0
}

export function firstFailure(): unknown {
  return failures[0]?.error
}

/** Returns the first error, with the others chained to it, and clears the list. */
export function takeFailures(): unknown {
  const errors = failures.map(({ error }) => error)
  failures = []
  return chain(errors)
}

/** Returns the first error, with the others chained to it. */
export function chain(errors: readonly unknown[]): unknown {
  for (const [index, error] of errors.entries()) {
    if (index + 1 < errors.length) attachSuppressed(error, errors[index + 1])
  }
  return errors[0]
}

/** Runs the function of a group and records its error. */
export function attempt<T>(fn: () => T, api: string): T | undefined {
  try {
    const result = fn()
    refuseThenable(result, api)
    return result
  } catch (error) {
    note(error)
    return undefined
  }
}

function refuseThenable(result: unknown, api: string): void {
  if (typeof result !== 'object' || result === null || typeof (result as { then?: unknown }).then !== 'function') {
    return
  }
  // Ignore a later rejection, which is a consequence of the error below.
  ;(result as PromiseLike<unknown>).then(undefined, () => undefined)
  throw new TypeError(
    `${api}: fn must be a synchronous function, not one that returns a promise: the group ends before that settles`,
  )
}
