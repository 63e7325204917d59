import { addon } from '../addon/load.js'

/**
 * Tells the garbage collector that objects hold so many bytes more outside of its heap, or fewer. Returns how many it
 * knows of.
 */
export function adjustExternalMemory(bytes: number): number {
  return addon().adjustExternalMemory(bytes)
}

let last = 0

/**
 * Watches an object without keeping it: the number that {@link takeCollected} returns once the collector has taken it.
 */
export function watchObject(object: object): number {
  last += 1
  addon().watchObject(last, object)
  return last
}

/** The object is watched no longer. */
export function forgetObject(id: number): void {
  addon().forgetObject(id)
}

/**
 * Runs the garbage collector, and returns the numbers of watched objects that it has taken since the last call. A
 * `FinalizationRegistry` would tell of them in a later turn. Empty in engines that cannot be asked to collect.
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
    // An engine without these flags.
  }
  return () => undefined
}
