import { outOfRange, wrongType } from '@shoal/types'

/** Bytes of a CUipcMemHandle and of a CUipcEventHandle. */
export const handleBytes = 64

/** The bytes of a handle from base64. @throws TypeError, RangeError */
export function decodeHandle(text: unknown, api: string): Uint8Array {
  if (typeof text !== 'string') throw wrongType(api, 'handle.handle', 'base64 text', text)
  const bytes = Uint8Array.from(Buffer.from(text, 'base64'))
  if (bytes.length !== handleBytes) throw outOfRange(api, 'handle.handle', `${handleBytes} bytes`, bytes.length)
  return bytes
}

export function encodeHandle(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
