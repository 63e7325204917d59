/** How releases run: later on a native thread, immediately, or later with a caller that awaits them. */
let isBlocking = false
let collected: Promise<unknown>[] | undefined

/** Runs `fn`. Its releases run immediately on this thread and may block it. */
export function withBlockingReleases<T>(fn: () => T): T {
  const before = isBlocking
  isBlocking = true
  try {
    return fn()
  } finally {
    isBlocking = before
  }
}

/** Whether releases must be complete when the releasing call returns. */
export function releasesBlock(): boolean {
  return isBlocking
}

/** Resolves when all releases that `fn` starts are complete. @throws (rejects) their first error */
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

/** Whether a caller awaits the releases that start now, and receives their errors. */
export function releasesAreAwaited(): boolean {
  return collected !== undefined
}

/** Adds a started release to those the caller awaits. Requires {@link releasesAreAwaited}. */
export function addAwaited(release: Promise<unknown>): void {
  collected?.push(release)
}
