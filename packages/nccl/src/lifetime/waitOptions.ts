/** How long to wait for other ranks. A communicator whose wait ends early is aborted: nothing else ends its operations. */
export interface CommunicatorWaitOptions {
  /** Aborts the communicator when it fires, such as the `lost` signal of a job. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which the communicator is aborted. Default: no limit. */
  readonly timeout?: number | undefined
}

const longestTimeout = 2 ** 31 - 1

/** Refuses options of a wait that make no sense. */
export function checkWaitOptions(options: unknown, api: string): CommunicatorWaitOptions {
  if (options === undefined) return {}
  if (typeof options !== 'object' || options === null) throw new TypeError(`${api}: options must be an object`)
  const { signal, timeout } = options as CommunicatorWaitOptions
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`${api}: signal must be an AbortSignal`)
  }
  if (timeout === undefined) return { signal }
  if (typeof timeout !== 'number' || Number.isNaN(timeout)) {
    throw new TypeError(`${api}: timeout must be a number of milliseconds`)
  }
  if (!(timeout >= 0 && timeout <= longestTimeout)) {
    throw new RangeError(`${api}: timeout must be from 0 to ${longestTimeout} milliseconds, got ${timeout}`)
  }
  return { signal, timeout }
}
