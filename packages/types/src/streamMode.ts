import { requireOneOf } from './arguments/scalars.js'
import { AlreadyInUseError } from './errors/busy.js'

/** Meaning of stream handle 0: one stream per process (`legacy`) or per thread (`per-thread`). */
export type StreamMode = 'legacy' | 'per-thread'

const streamModes: readonly StreamMode[] = ['legacy', 'per-thread']

// Global, not module state: two installed copies of this package must agree within one thread.
const stateKey = Symbol.for('shoal.streamMode')
const workerDataKey = 'shoal.streamMode'
interface StreamModeState {
  mode: StreamMode | undefined
  wasRead: boolean
}

function sharedState(): StreamModeState {
  const globals = globalThis as { [stateKey]?: StreamModeState }
  return (globals[stateKey] ??= { mode: undefined, wasRead: false })
}

/**
 * Returns the stream mode of this process, fixed at the first read.
 *
 * The mode comes from the first of these sources that sets one: `setStreamMode`, the thread that started this worker,
 * the environment variable `SHOAL_STREAM_MODE` (`legacy` or `per-thread`). The default is `legacy`.
 *
 * @throws RangeError when `SHOAL_STREAM_MODE` has another value
 */
export function streamMode(): StreamMode {
  const state = sharedState()
  if (!state.wasRead) {
    state.mode ??= inheritedMode() ?? modeFromEnvironment()
    state.wasRead = true
    workerThreads().setEnvironmentData(workerDataKey, state.mode)
  }
  return state.mode as StreamMode
}

/**
 * Chooses the stream mode before the first use of any CUDA function.
 *
 * Functions are bound for one mode and cannot change later. Workers started afterwards inherit the choice.
 *
 * @throws TypeError when `mode` is neither `'legacy'` nor `'per-thread'`
 * @throws AlreadyInUseError when another mode is already in use, in this thread or in the one that started it
 */
export function setStreamMode(mode: StreamMode): void {
  requireOneOf(mode, 'setStreamMode', 'mode', streamModes)
  const state = sharedState()
  const inUse = state.wasRead ? state.mode : inheritedMode()
  if (inUse !== undefined && inUse !== mode) {
    throw new AlreadyInUseError({
      api: 'setStreamMode',
      object: 'stream mode',
      reason:
        `the stream mode is already '${inUse}' and in use; it cannot become '${mode}'. ` +
        'Call setStreamMode before the first CUDA call, or set SHOAL_STREAM_MODE when starting the process.',
    })
  }
  state.mode = mode
}

// Loaded on demand, because loading takes a millisecond.
const workerThreads = () => process.getBuiltinModule('node:worker_threads')

function inheritedMode(): StreamMode | undefined {
  const value = workerThreads().getEnvironmentData(workerDataKey)
  return isStreamMode(value) ? value : undefined
}

function modeFromEnvironment(): StreamMode {
  const value = process.env['SHOAL_STREAM_MODE']
  if (value === undefined || value === '') return 'legacy'
  if (isStreamMode(value)) return value
  throw new RangeError(`SHOAL_STREAM_MODE must be 'legacy' or 'per-thread', not '${value}'`)
}

function isStreamMode(value: unknown): value is StreamMode {
  return (streamModes as readonly unknown[]).includes(value)
}
