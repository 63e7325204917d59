import { addon } from '../addon/load.js'

/** Reports a change of memory that objects hold outside the garbage collector's heap, in bytes. Returns the total. */
export function adjustExternalMemory(bytes: number): number {
  return addon().adjustExternalMemory(bytes)
}

let last = 0

/** Watches an object without keeping it alive. Returns the number for {@link takeCollected}. */
export function watchObject(object: object): number {
  last += 1
  addon().watchObject(last, object)
  return last
}

/** Stops watching an object. */
export function forgetObject(id: number): void {
  addon().forgetObject(id)
}

/**
 * Runs the garbage collector and returns newly collected watched objects by number.
 *
 * A `FinalizationRegistry` would report them in a later turn. Returns an empty list in engines that cannot collect on
 * request.
 */
export function takeCollected(): number[] {
  collector ??= findCollector()
  collector()
  return addon().takeCollected()
}

let collector: (() => void) | undefined

function findCollector(): () => void {
  const { gc, Bun } = globalThis as { gc?: () => void; Bun?: { gc?: (isSynchronous: boolean) => void } }
  if (gc !== undefined) return () => gc()
  if (Bun?.gc !== undefined) return () => Bun.gc?.(true)
  try {
    const v8 = process.getBuiltinModule('node:v8')
    v8.setFlagsFromString('--expose-gc')
    const found: unknown = process.getBuiltinModule('node:vm').runInNewContext('gc')
    v8.setFlagsFromString('--no-expose-gc')
    if (typeof found === 'function') return () => void found()
  } catch {
    // The engine lacks these flags.
  }
  return () => undefined
}
