import type { RendezvousOptions } from './job.js'
import { maximumValueBytes } from './rendezvous/frames.js'

export const defaultTimeout = 300_000

/** The limit of a wait, in milliseconds. @throws TypeError, RangeError */
export function checkWait(options: RendezvousOptions, where: string): number {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${where}: options must be an object`)
  const { timeout, signal } = options
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`${where}: signal must be an AbortSignal`)
  }
  if (timeout === undefined) return defaultTimeout
  if (typeof timeout !== 'number' || Number.isNaN(timeout)) throw new TypeError(`${where}: timeout must be a number`)
  if (timeout < 0) throw new RangeError(`${where}: timeout must not be negative, got ${timeout}`)
  return timeout
}

/** @throws TypeError, RangeError */
export function checkName(name: string, where: string): void {
  if (typeof name !== 'string') throw new TypeError(`${where}: the name must be a string`)
  const bytes = Buffer.byteLength(name)
  if (bytes < 1 || bytes > 256) throw new RangeError(`${where}: a name has 1 to 256 bytes, this one has ${bytes}`)
}

/** @throws TypeError, RangeError */
export function checkValue(bytes: Uint8Array, where: string): void {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`${where}: the value must be a Uint8Array`)
  if (bytes.byteLength > maximumValueBytes) {
    throw new RangeError(
      `${where}: a value has at most ${maximumValueBytes} bytes, this one has ${bytes.byteLength}; ` +
        'larger data goes through the communicator',
    )
  }
}

/** @throws TypeError, RangeError */
export function checkRoot(root: number | undefined, worldSize: number, where: string): number {
  if (root === undefined) return 0
  if (!Number.isInteger(root)) throw new TypeError(`${where}: root must be an integer`)
  if (root < 0 || root >= worldSize) throw new RangeError(`${where}: root ${root} is beyond the ${worldSize} ranks`)
  return root
}
