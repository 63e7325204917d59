import { nestedCall } from '@shoal/ffi/calls'
import { nvshmem } from '@shoal/nvshmem-sys'

/** Queues that have a thread inside NVSHMEM, or left it there for good. */
const inside = new Set<object>()
let listening = false
let prepared = false
let isWorker = false
let timer: NodeJS.Timeout | undefined

/** How long a call of a worker may take before the end of the process is prepared, in milliseconds. */
const preparedAfter = 500

/**
 * Has the process end without C's exit handlers and destructors, with its own status and after all of JavaScript's
 * handlers. NVSHMEM's and CUDA's may wait for the thread that is inside NVSHMEM, which nothing ends.
 */
function prepareEnd(): void {
  if (prepared || !nvshmem.isLoaded) return
  // NVSHMEM needs glibc, where `on_exit` hands the status on: `_exit` itself is the handler. The one registered last
  // runs first. The loader finds both among what NVSHMEM's library needs.
  const end = nvshmem.rawSymbol('_exit')
  if (end === undefined || !nvshmem.has('on_exit')) return
  const register = nvshmem.function('on_exit', { parameters: ['function: ptr', 'argument: ptr'], result: 'i32' })
  nestedCall(
    () => undefined,
    () => register(end, null),
  )
  prepared = true
}

function onExit(): void {
  if (inside.size > 0) prepareEnd()
}

/** From here on, until {@link leaveNvshmem}, the process may have to end with a thread inside NVSHMEM. */
export function enterNvshmem(queue: object): void {
  if (!listening) {
    listening = true
    isWorker = !process.getBuiltinModule('node:worker_threads').isMainThread
    process.on('exit', onExit)
  }
  inside.add(queue)
  // A worker that is ended from outside, as by the end of the process, runs no handler.
  if (isWorker && !prepared) timer ??= setTimeout(onExit, preparedAfter).unref()
}

/** Like {@link enterNvshmem}, for a thread that may never leave NVSHMEM again. */
export function staysInNvshmem(queue: object): void {
  enterNvshmem(queue)
  if (isWorker) prepareEnd()
}

export function leaveNvshmem(queue: object): void {
  inside.delete(queue)
  clearTimeout(timer)
  timer = undefined
}
