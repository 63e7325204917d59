import { describeValue } from '@shoal/types'

/** Bytes of a CUipcMemHandle and of a CUipcEventHandle. */
export const handleBytes = 64

/** The bytes of a handle from base64. @throws TypeError, RangeError */
export function decodeHandle(text: unknown, name: string): Uint8Array {
  if (typeof text !== 'string') throw new TypeError(`${name} must be base64 text, not ${describeValue(text)}`)
  const bytes = Uint8Array.from(Buffer.from(text, 'base64'))
  if (bytes.length !== handleBytes) throw new RangeError(`${name} has ${bytes.length} bytes, not ${handleBytes}`)
  return bytes
}

export function encodeHandle(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
