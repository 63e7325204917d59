import { isAbsolute } from 'node:path'
import type { AddonLoadError, LoadAttempt } from '@shoal/types'
import { loadRefusal } from '../loadRefusal.js'
import { isMainThread } from '../mainThread.js'
import { addonFiles, addonLoadError } from './addonFiles.js'
import { block } from './block.js'
import type { Addon, AddonHandlers, CallResult } from './contract.js'
import { koffiEngine } from './koffiEngine.js'

/** The engine of native calls: the addon, or koffi, which makes raw calls only. */
export type CallEngine = 'addon' | 'koffi'

/** Returns the engine that `SHOAL_FFI_ENGINE` chooses. @throws RangeError */
export function callEngine(): CallEngine {
  const choice = process.env['SHOAL_FFI_ENGINE'] ?? ''
  if (choice === 'koffi') return 'koffi'
  if (choice === '' || choice === 'addon') return 'addon'
  throw new RangeError(`SHOAL_FFI_ENGINE must be 'addon' or 'koffi', not '${choice}'`)
}

let loaded: Addon | undefined
let failure: AddonLoadError | undefined

const waits = new Map<number, (status: number, isForgotten: boolean) => void>()
const callbacks = new Map<number, (status: number) => void>()
const jobs = new Map<number, (contextStatus: number, results?: CallResult[]) => void>()

/** Handlers of native work in flight, by number. Waits and jobs remove theirs when they are reported. */
export const pending = { waits, callbacks, jobs }

const handlers: AddonHandlers = {
  wait(id, status, isForgotten) {
    const settle = waits.get(id)
    waits.delete(id)
    settle?.(status, isForgotten)
  },
  callback(id, status) {
    callbacks.get(id)?.(status)
  },
  job(id, contextStatus, results) {
    const settle = jobs.get(id)
    jobs.delete(id)
    settle?.(contextStatus, results)
  },
}

/** Opens a file as an addon, whatever its extension: `require` would run other files as JavaScript. */
function open(file: string): Addon {
  const refusal = isAbsolute(file) ? loadRefusal(file) : 'not an absolute path'
  if (refusal !== undefined) throw new Error(refusal)
  const module = { exports: {} }
  process.dlopen(module, file)
  return module.exports as Addon
}

/**
 * Returns the addon, or the engine that replaces it; loads it on first use.
 *
 * @throws AddonLoadError if the addon is missing for this platform or does not load; the same error each time.
 * FeatureNotSupportedError if koffi was chosen and is not installed.
 */
export function addon(): Addon {
  return loaded ?? loadAddon()
}

function loadAddon(): Addon {
  if (failure !== undefined) throw failure
  if (callEngine() === 'koffi') {
    loaded = koffiEngine()
    return loaded
  }
  const attempts: LoadAttempt[] = []
  for (const { step, file } of addonFiles(attempts)) {
    try {
      const found = open(file)
      found.initialize(block, handlers)
      if (isMainThread()) {
        found.guardExit(true)
        process.once('exit', () => found.guardExit(false))
      }
      loaded = found
      return found
    } catch (error) {
      attempts.push({ step, candidate: file, outcome: firstLine(error) })
    }
  }
  failure = addonLoadError(attempts)
  throw failure
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.split('\n', 1)[0] ?? text
}
