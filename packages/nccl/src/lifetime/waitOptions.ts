import { type OptionKeys, optionalOptions, optionalSignal, optionalTimeout, waitKeys } from '@shoal/types'

/**
 * How long to wait for other ranks. A communicator whose wait ends early is aborted: nothing else ends its operations.
 */
export interface CommunicatorWaitOptions {
  /** Aborts the communicator when it fires, such as the `lost` signal of a job. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which the communicator is aborted, from 0 to 2^31 - 1. Default: no limit. */
  readonly timeout?: number | undefined
}

/** The wait among the options of a call, whose keys were found to be right. @throws TypeError, RangeError */
export function readWait({ signal, timeout }: CommunicatorWaitOptions, api: string): CommunicatorWaitOptions {
  return { signal: optionalSignal(signal, api), timeout: optionalTimeout(timeout, api) }
}

/** Options of a wait and nothing else. @throws TypeError, RangeError */
export function requireWait(options: unknown, api: string): CommunicatorWaitOptions {
  return readWait(optionalOptions(options, api, waitKeys as OptionKeys<CommunicatorWaitOptions>), api)
}
