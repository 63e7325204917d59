/**
 * How what a dispose() starts is released: later on a native thread, at once, or such that somebody can wait for it.
 */
let isBlocking = false
let collected: Promise<unknown>[] | undefined

/** Releases are made at once while `fn` runs, on this thread, which they may block. */
export function withBlockingReleases<T>(fn: () => T): T {
  const before = isBlocking
  isBlocking = true
  try {
    return fn()
  } finally {
    isBlocking = before
  }
}

/** Whether releases have to be over when the call returns that makes them. */
export function releasesBlock(): boolean {
  return isBlocking
}

/** Resolves when all releases that `fn` starts are over. @throws (rejects) the first error of them */
export async function awaitReleases(fn: () => void): Promise<void> {
  const before = collected
  const started: Promise<unknown>[] = []
  collected = started
  try {
    fn()
  } finally {
    collected = before
  }
  for (const result of await Promise.allSettled(started)) if (result.status === 'rejected') throw result.reason
}

/** Whether somebody waits for the releases that are started now, and gets their errors. */
export function releasesAreAwaited(): boolean {
  return collected !== undefined
}

/** A release was started. Somebody must wait for it ({@link releasesAreAwaited}). */
export function addAwaited(release: Promise<unknown>): void {
  collected?.push(release)
}
