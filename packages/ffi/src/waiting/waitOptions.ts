import {
  isPlainObject,
  type OptionKeys,
  optionalOptions,
  optionalSignal,
  optionalTimeout,
  waitKeys,
  wrongType,
} from '@shoal/types'
import type { BackgroundWork } from './hold.js'

/** Limits of a wait, and whether it keeps the process alive. */
export interface WaitOptions {
  /** Filled with a function that lets the process end during the wait. */
  readonly background?: BackgroundWork | undefined
  /** Ends the wait with an AbortedError. The work itself continues. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which the wait ends with a TimeoutError, from 0 to 2^31 - 1. The work itself continues. */
  readonly timeout?: number | undefined
}

const keys: OptionKeys<WaitOptions> = { background: true, ...waitKeys }

/** Requires an object that accepts a function. @throws TypeError */
export function requireBackground(value: unknown, api: string): void {
  if (value === undefined || (isPlainObject(value) && Object.isExtensible(value))) return
  throw wrongType(api, 'background', 'a plain object that can be written to', value)
}

/** Returns wait options, each read once. @throws TypeError, RangeError */
export function readWaitOptions(value: unknown, api: string): WaitOptions {
  const { background, signal, timeout } = optionalOptions<WaitOptions>(value, api, keys)
  requireBackground(background, api)
  return { background, signal: optionalSignal(signal, api), timeout: optionalTimeout(timeout, api) }
}
