let answer: boolean | undefined

/** True on the process's main thread. Lazy, because loading `node:worker_threads` takes 3 ms. */
export function isMainThread(): boolean {
  answer ??= process.getBuiltinModule('node:worker_threads').isMainThread
  return answer
}
