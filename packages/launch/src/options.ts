import {
  isInstance,
  type OptionKeys,
  optionalOptions,
  optionalSignal,
  optionalTimeout,
  requireInteger,
  requireText,
  waitKeys,
  wrongType,
} from '@shoal/types'
import type { RendezvousOptions, ShareOptions } from './job.js'
import { maximumValueBytes } from './rendezvous/frames.js'

const defaultTimeout = 300_000

/** Checked wait options, each read once. */
export interface Wait {
  /** Limit in milliseconds. */
  readonly timeout: number
  readonly signal: AbortSignal | undefined
}

const shareKeys: OptionKeys<ShareOptions> = { ...waitKeys, root: true }

/** Reads wait options. @throws TypeError, RangeError */
export function readWait(options: RendezvousOptions | undefined, api: string): Wait {
  return waitOf(optionalOptions<RendezvousOptions>(options, api, waitKeys), api)
}

/** Reads share options. @throws TypeError, RangeError */
export function readShare(options: ShareOptions | undefined, worldSize: number): Wait & { readonly root: number } {
  const api = 'Job.share'
  const { root = 0, ...wait } = optionalOptions(options, api, shareKeys)
  return { root: requireInteger(root, api, 'root', 0, worldSize - 1), ...waitOf(wait, api) }
}

/** Checks limit and signal. @throws TypeError, RangeError */
export function waitOf({ timeout, signal }: RendezvousOptions, api: string): Wait {
  return { timeout: optionalTimeout(timeout, api) ?? defaultTimeout, signal: optionalSignal(signal, api) }
}

/** Requires a name or key of 1 to 256 bytes of UTF-8. @throws TypeError, RangeError */
export function requireName(name: string, api: string, parameter = 'name'): void {
  requireText(name, api, parameter)
  const bytes = Buffer.byteLength(name)
  if (bytes > 256) throw new RangeError(`${api}: ${parameter} must be a string of at most 256 bytes, not of ${bytes}`)
}

/** Requires bytes that fit in a message. @throws TypeError, RangeError */
export function requireValue(bytes: Uint8Array, api: string, parameter: string): void {
  if (!isInstance(bytes, Uint8Array)) throw wrongType(api, parameter, 'a Uint8Array', bytes)
  if (bytes.byteLength <= maximumValueBytes) return
  throw new RangeError(
    `${api}: ${parameter} must be at most ${maximumValueBytes} bytes, not ${bytes.byteLength}; ` +
      'larger data goes through the communicator',
  )
}
