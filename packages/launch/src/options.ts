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

/** The options of a wait as they are used, each read once. */
export interface Wait {
  /** Milliseconds. */
  readonly timeout: number
  readonly signal: AbortSignal | undefined
}

const shareKeys: OptionKeys<ShareOptions> = { ...waitKeys, root: true }

/** @throws TypeError, RangeError */
export function readWait(options: RendezvousOptions | undefined, api: string): Wait {
  return waitOf(optionalOptions<RendezvousOptions>(options, api, waitKeys), api)
}

/** @throws TypeError, RangeError */
export function readShare(options: ShareOptions | undefined, worldSize: number): Wait & { readonly root: number } {
  const api = 'Job.share'
  const { root = 0, ...wait } = optionalOptions(options, api, shareKeys)
  return { root: requireInteger(root, api, 'root', 0, worldSize - 1), ...waitOf(wait, api) }
}

/** @throws TypeError, RangeError */
export function waitOf({ timeout, signal }: RendezvousOptions, api: string): Wait {
  return { timeout: optionalTimeout(timeout, api) ?? defaultTimeout, signal: optionalSignal(signal, api) }
}

/** A name or a key: 1 to 256 bytes of UTF-8. @throws TypeError, RangeError */
export function requireName(name: string, api: string, parameter = 'name'): void {
  requireText(name, api, parameter)
  const bytes = Buffer.byteLength(name)
  if (bytes > 256) throw new RangeError(`${api}: ${parameter} must be a string of at most 256 bytes, not of ${bytes}`)
}

/** Bytes that fit in a message. @throws TypeError, RangeError */
export function requireValue(bytes: Uint8Array, api: string, parameter: string): void {
  if (!isInstance(bytes, Uint8Array)) throw wrongType(api, parameter, 'a Uint8Array', bytes)
  if (bytes.byteLength <= maximumValueBytes) return
  throw new RangeError(
    `${api}: ${parameter} must be at most ${maximumValueBytes} bytes, not ${bytes.byteLength}; ` +
      'larger data goes through the communicator',
  )
}
