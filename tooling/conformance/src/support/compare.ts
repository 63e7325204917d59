import { AssertionError } from 'node:assert'

/** Compares two arrays bit by bit. Reports the first element that differs. */
export function assertSameBits(actual: ArrayBufferView, expected: ArrayBufferView, what: string): void {
  const [got, want] = [bytesOf(actual), bytesOf(expected)]
  if (got.length !== want.length) fail(`${what}: ${got.length} bytes, expected ${want.length}`, got.length, want.length)
  if (Buffer.compare(got, want) === 0) return
  const at = got.findIndex((byte, index) => byte !== want[index])
  const size = 'BYTES_PER_ELEMENT' in actual ? (actual.BYTES_PER_ELEMENT as number) : 1
  const index = Math.floor(at / size)
  const element = (bytes: Buffer): string => bytes.subarray(index * size, (index + 1) * size).toString('hex')
  const [gotHex, wantHex] = [element(got), element(want)]
  fail(`${what}: element ${index} of ${got.length / size} is 0x${gotHex}, expected 0x${wantHex}`, gotHex, wantHex)
}

function bytesOf(view: ArrayBufferView): Buffer {
  return Buffer.from(view.buffer, view.byteOffset, view.byteLength)
}

function fail(message: string, actual: unknown, expected: unknown): never {
  throw new AssertionError({ message, actual, expected, operator: 'assertSameBits', stackStartFn: assertSameBits })
}
