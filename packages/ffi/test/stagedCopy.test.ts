import { randomFillSync } from 'node:crypto'
import { NativeMemory } from '@shoal/ffi'
import { bindCall, slots64, stagedCopyFrom, stagedCopyTo } from '@shoal/ffi/calls'
import { describe, expect, test } from 'vitest'

const part = 2 * 1024 * 1024
const lengths = [1, 4095, part - 1, part, part + 1, 2 * part, 2 * part + 4097, 5 * part + 3]

function caller(functionAddress: bigint, userData: bigint): () => void {
  const call = bindCall(functionAddress, 1, 'void', 'copyPart')
  return () => {
    slots64[0] = userData
    call()
  }
}

describe.each([1, 3])('a staged copy on %i threads', (threads) => {
  test.each(lengths)('downloads %i bytes in parts, each at the place the stream reads', (length) => {
    const source = randomFillSync(new Uint8Array(length))
    const arrived = new Uint8Array(length)
    using block = NativeMemory.allocate(2 * part)
    const copy = stagedCopyFrom(block.address, source, length, part, threads)
    // A sandbox may forbid this.
    if (copy === undefined) return
    const next = caller(copy.functionAddress, copy.userData)
    for (let start = 0; start < length; start += part) {
      next()
      const bytes = Math.min(part, length - start)
      arrived.set(block.bytes.subarray(start % (2 * part), (start % (2 * part)) + bytes), start)
    }
    copy.end()
    expect(Buffer.compare(arrived, source)).toBe(0)
  })

  test.each(lengths)('uploads %i bytes in parts, complete after the last', (length) => {
    const source = randomFillSync(new Uint8Array(length))
    using block = NativeMemory.allocate(2 * part)
    const memory = NativeMemory.allocate(length)
    const copy = stagedCopyTo(block.address, memory, length, part, threads)
    const next = caller(copy.functionAddress, copy.userData)
    for (let start = 0; start < length; start += part) {
      block.bytes.set(source.subarray(start, start + part), start % (2 * part))
      next()
    }
    expect(Buffer.compare(memory.bytes, source)).toBe(0)
    memory.dispose()
    copy.end()
  })
})

test('a staged copy ended in the middle finishes started parts, and writes nothing afterwards', () => {
  const source = new Uint8Array(4 * part).fill(7)
  const block = NativeMemory.allocate(2 * part)
  const copy = stagedCopyFrom(block.address, source, source.length, part, 2)
  if (copy === undefined) return
  caller(copy.functionAddress, copy.userData)()
  copy.end()
  // The part after the first was already in flight.
  expect(block.bytes.subarray(part).every((byte) => byte === 7)).toBe(true)
  block.dispose()
})
