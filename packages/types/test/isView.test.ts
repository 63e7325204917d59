import { defineStruct, isView } from '@shoal/types'
import { describe, expect, it, vi } from 'vitest'

/** More calls than an optimizing compiler needs before it recompiles their caller. */
const manyCalls = 300_000

const Block = defineStruct('Block', { words: ['u32', 16] })

function roomFor(byteLength: number): { bytes: Uint8Array; view: DataView } {
  const bytes = new Uint8Array(byteLength)
  return { bytes, view: new DataView(bytes.buffer) }
}

/** Reads its buffer from a field while it writes, like the code in which `ArrayBuffer.isView` failed. */
class Writer {
  #rooms: ({ bytes: Uint8Array; view: DataView } | undefined)[] = []

  write(value: { words: number[] }): void {
    const room = this.#rooms[0] ?? roomFor(64)
    this.#rooms[0] = undefined
    try {
      Block.write(room.view, value)
    } finally {
      this.#rooms[0] = room
    }
  }
}

describe('isView', () => {
  it.each([
    ['a typed array', new Uint8Array(1), true],
    ['a DataView', new DataView(new ArrayBuffer(1)), true],
    ['a Buffer', Buffer.alloc(1), true],
    ['an ArrayBuffer', new ArrayBuffer(1), false],
    ['an object with the prototype of a DataView', Object.create(DataView.prototype), false],
    ['null', null, false],
    ['a number', 1, false],
  ])('returns whether %s is a view', (_, value, expected) => {
    expect(isView(value)).toBe(expected)
  })

  it('accepts only a DataView if ArrayBuffer.isView is broken', () => {
    const forgetful = vi.spyOn(ArrayBuffer, 'isView').mockReturnValue(false)
    try {
      expect(isView(new DataView(new ArrayBuffer(1)))).toBe(true)
      const { proxy, revoke } = Proxy.revocable(new DataView(new ArrayBuffer(1)), {})
      revoke()
      for (const other of [Object.create(DataView.prototype), proxy, new ArrayBuffer(1), null, 1]) {
        expect(isView(other)).toBe(false)
      }
    } finally {
      forgetful.mockRestore()
    }
  })

  it('keeps struct writes to a DataView working after many calls', () => {
    const writer = new Writer()
    const value = { words: Array.from({ length: 16 }, (_, index) => index) }
    expect(() => {
      for (let call = 0; call < manyCalls; call += 1) writer.write(value)
    }).not.toThrow()
  })
})
