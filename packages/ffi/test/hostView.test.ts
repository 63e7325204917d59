import { hostView, NativeMemory } from '@shoal/ffi'
import { describe, expect, test } from 'vitest'

type Transferable = ArrayBuffer & { transfer?: () => ArrayBuffer }

const until = async (done: () => boolean): Promise<void> => {
  for (let i = 0; i < 200 && !done(); i++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe('a view over foreign memory', () => {
  test('shares the memory, and is empty after detach', async () => {
    const memory = NativeMemory.allocate(16)
    const view = hostView(memory.address, 16)
    new Uint8Array(view.buffer).set([1, 2, 3], 4)
    expect([...memory.bytes.subarray(4, 7)]).toEqual([1, 2, 3])
    let released = false
    view.reach.whenReleased(() => {
      released = true
    })
    expect(view.detach()).toBe(true)
    expect(view.buffer.byteLength).toBe(0)
    await until(() => released)
    expect(released).toBe(true)
    let again = false
    view.reach.whenReleased(() => {
      again = true
    })
    expect(again).toBe(true)
  })

  test('cannot be transferred to another thread', () => {
    const memory = NativeMemory.allocate(16)
    const view = hostView(memory.address, 16)
    // Node 20 sends a copy instead of throwing. In no version does the memory itself move.
    try {
      new Uint8Array(structuredClone(view.buffer, { transfer: [view.buffer] })).fill(9)
    } catch (error) {
      expect((error as Error).name).toBe('DataCloneError')
    }
    expect([...memory.bytes]).toEqual(Array(16).fill(0))
    expect(view.buffer.byteLength).toBe(16)
  })

  test('reports when the memory was moved to another buffer', (context) => {
    const memory = NativeMemory.allocate(16)
    const view = hostView(memory.address, 16)
    const buffer: Transferable = view.buffer
    if (buffer.transfer === undefined) return context.skip('this Node has no ArrayBuffer.prototype.transfer')
    const moved = buffer.transfer()
    let released = false
    view.reach.whenReleased(() => {
      released = true
    })
    expect(view.detach()).toBe(false)
    expect(released).toBe(false)
    new Uint8Array(moved)[0] = 7
    expect(memory.bytes[0]).toBe(7)
  })

  test.each([
    [0n, 8],
    [5, 8],
    [8n, -1],
    [8n, Number.NaN],
    [-1n, 8],
    [2n ** 70n, 8],
    [8n, 2 ** 60],
  ])('refuses address %s with %s bytes', (address, bytes) => {
    expect(() => hostView(address as bigint, bytes)).toThrow(/hostView/)
  })
})
