let answer: boolean | undefined

/**
 * Whether this is the process's main thread. Asked when it matters, as `node:worker_threads` takes Node 3 ms to load.
 */
export function isMainThread(): boolean {
  answer ??= process.getBuiltinModule('node:worker_threads').isMainThread
  return answer
}
