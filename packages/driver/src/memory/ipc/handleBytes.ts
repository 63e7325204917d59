import { outOfRange, wrongType } from '@shoal/types'

/** Size of a CUipcMemHandle, a CUipcEventHandle and a CUmemPoolPtrExportData in bytes. */
export const handleBytes = 64

/** Decodes the bytes of a handle from base64. @throws TypeError, RangeError */
export function decodeHandle(text: unknown, api: string, name = 'handle.handle'): Uint8Array {
  if (typeof text !== 'string') throw wrongType(api, name, 'base64 text', text)
  const bytes = Uint8Array.from(Buffer.from(text, 'base64'))
  if (bytes.length !== handleBytes) throw outOfRange(api, name, `${handleBytes} bytes`, bytes.length)
  // Node ignores characters that are not base64.
  if (encodeHandle(bytes) !== text) throw wrongType(api, name, 'base64 text', text)
  return bytes
}

export function encodeHandle(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
