import { nestedCall } from '@shoal/ffi/calls'
import { nvshmem } from '@shoal/nvshmem-sys'

/** Queues whose thread is inside NVSHMEM, possibly forever. */
const inside = new Set<object>()
let listening = false
let prepared = false
let isWorker = false
let timer: NodeJS.Timeout | undefined

/** Milliseconds of a worker's call before the end of the process is prepared. */
const preparedAfter = 500

/**
 * Makes the process end without C's exit handlers and destructors.
 *
 * The status and all JavaScript handlers stay. C handlers of NVSHMEM and CUDA may wait for the thread inside NVSHMEM,
 * which cannot be ended.
 */
function prepareEnd(): void {
  if (prepared || !nvshmem.isLoaded) return
  // NVSHMEM needs glibc, where `on_exit` passes the status: `_exit` itself is the handler. The handler registered last
  // runs first. The loader finds both functions among the dependencies of NVSHMEM's library.
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

/** Records that a thread may be inside NVSHMEM, until {@link leaveNvshmem}. */
export function enterNvshmem(queue: object): void {
  if (!listening) {
    listening = true
    isWorker = !process.getBuiltinModule('node:worker_threads').isMainThread
    process.on('exit', onExit)
  }
  inside.add(queue)
  // A worker that is terminated, also by the end of the process, runs no handler.
  if (isWorker && !prepared) timer ??= setTimeout(onExit, preparedAfter).unref()
}

/** Like {@link enterNvshmem}, for a thread that may never leave NVSHMEM. */
export function staysInNvshmem(queue: object): void {
  enterNvshmem(queue)
  if (isWorker) prepareEnd()
}

export function leaveNvshmem(queue: object): void {
  inside.delete(queue)
  clearTimeout(timer)
  timer = undefined
}
