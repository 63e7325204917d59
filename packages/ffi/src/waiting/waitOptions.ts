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

/** How long to wait, and whether that keeps the process alive. */
export interface WaitOptions {
  /** Filled with what lets the process end although the wait is still pending. */
  readonly background?: BackgroundWork | undefined
  /** Ends the wait with an AbortedError. The work itself goes on. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds after which the wait ends with a TimeoutError, from 0 to 2^31 - 1. The work itself goes on. */
  readonly timeout?: number | undefined
}

const keys: OptionKeys<WaitOptions> = { background: true, ...waitKeys }

/** What is filled with a function: an object that takes one. @throws TypeError */
export function requireBackground(value: unknown, api: string): void {
  if (value === undefined || (isPlainObject(value) && Object.isExtensible(value))) return
  throw wrongType(api, 'background', 'a plain object that can be written to', value)
}

/** The options of a wait, each read once. @throws TypeError, RangeError */
export function readWaitOptions(value: unknown, api: string): WaitOptions {
  const { background, signal, timeout } = optionalOptions<WaitOptions>(value, api, keys)
  requireBackground(background, api)
  return { background, signal: optionalSignal(signal, api), timeout: optionalTimeout(timeout, api) }
}
