import { type CUdevice, cuDeviceGet, cuDeviceGetCount, cuDeviceGetUuid } from '@shoal/cuda-sys/driver'
import { outOfRange, requireText } from '@shoal/types'
import { check } from '../errors.js'
import { scratch } from '../native.js'
import { startDriver } from '../start.js'

const uuids = new Map<number, string>()
const mostCharacters = 64

/** Checks a UUID from another source. An error can show all of its characters. @throws TypeError, RangeError */
export function requireUuid(value: unknown, api: string, name: string): string {
  const uuid = requireText(value, api, name)
  if (uuid.length > mostCharacters) throw outOfRange(api, name, `at most ${mostCharacters} characters`, uuid.length)
  return uuid
}

/** Returns a device's UUID in the form of `nvidia-smi`, `'GPU-…'` (`cuDeviceGetUuid`). */
export function deviceUuid(ordinal: number): string {
  let uuid = uuids.get(ordinal)
  if (uuid === undefined) {
    const out = scratch()
    check(cuDeviceGet(out, ordinal), 'cuDeviceGet')
    uuid = uuidOf(out.i32[0] as CUdevice)
    uuids.set(ordinal, uuid)
  }
  return uuid
}

/** Returns a device's UUID by handle. */
export function uuidOf(device: CUdevice): string {
  const out = scratch()
  check(cuDeviceGetUuid(out, device), 'cuDeviceGetUuid')
  const hex = Buffer.from(out.buffer, 0, 16).toString('hex')
  return `GPU-${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Returns the UUIDs of all devices of this process, ordered by ordinal. */
export function visibleUuids(): string[] {
  startDriver()
  const out = scratch()
  check(cuDeviceGetCount(out), 'cuDeviceGetCount')
  return Array.from({ length: out.i32[0] as number }, (_, ordinal) => deviceUuid(ordinal))
}
