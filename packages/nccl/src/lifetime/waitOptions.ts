import { type OptionKeys, optionalOptions, optionalSignal, optionalTimeout, waitKeys } from '@shoal/types'

/**
 * Limits of a wait for other ranks. If a wait ends early, the communicator is aborted, which alone ends its operations.
 */
export interface CommunicatorWaitOptions {
  /** Aborts the communicator when the signal fires, such as the `lost` signal of a job. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which the communicator is aborted, from 0 to 2^31 - 1. Default: no limit. */
  readonly timeout?: number | undefined
}

/** Returns the wait options of a call whose keys are checked. @throws TypeError, RangeError */
export function readWait({ signal, timeout }: CommunicatorWaitOptions, api: string): CommunicatorWaitOptions {
  return { signal: optionalSignal(signal, api), timeout: optionalTimeout(timeout, api) }
}

/** Returns wait options, and refuses other options. @throws TypeError, RangeError */
export function requireWait(options: unknown, api: string): CommunicatorWaitOptions {
  return readWait(optionalOptions(options, api, waitKeys as OptionKeys<CommunicatorWaitOptions>), api)
}
