import { type Header, maximumValueBytes } from './frames.js'

// Returns a field of a message. Throws for a message that no Shoal client sends.

export function integerOf(header: Header, field: string): number {
  const value = header[field]
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw new TypeError(`${field} is no integer`)
  return value
}

export function textOf(header: Header, field: string): string {
  const value = header[field]
  if (typeof value !== 'string') throw new TypeError(`${field} is no text`)
  return value
}

export function nameOf(header: Header, field: string): string {
  const name = textOf(header, field)
  if (name === '' || Buffer.byteLength(name) > 256) throw new RangeError('a name of wrong length')
  return name
}

export function checkedValue(body: Uint8Array): Uint8Array {
  if (body.byteLength > maximumValueBytes) throw new RangeError('a value that is too long')
  return body
}
