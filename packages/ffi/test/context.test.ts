import { callInContext, createLane, enterContext, leaveContext, NativeMemory, offThread } from '@shoal/ffi'
import { nestedCall, putI32, putPointer } from '@shoal/ffi/calls'
import { StatusError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { failWith, forceCurrent, library, storeCurrent } from './support/stubCalls.js'

describe('the current context', () => {
  test('is switched and restored, also nested, and left alone if already current', () => {
    const out = NativeMemory.allocate(8)
    const current = (): bigint => {
      storeCurrent(out)
      return out.u64[0] as bigint
    }
    const outer = enterContext(10n)
    expect(outer).toBe(0n)
    expect(enterContext(10n)).toBeUndefined()
    const inner = enterContext(11n)
    expect(current()).toBe(11n)
    leaveContext(inner)
    expect(current()).toBe(10n)
    leaveContext(outer)
    expect(current()).toBe(0n)
    expect(() => enterContext(666n)).toThrow(StatusError)
    expect(current()).toBe(0n)
  })

  test('becomes none if the previous context was destroyed before it can be restored', async () => {
    const out = NativeMemory.allocate(16)
    const current = (): bigint => {
      storeCurrent(out)
      return out.u64[0] as bigint
    }
    forceCurrent(666n)
    const gone = enterContext(10n)
    expect([gone, current()]).toEqual([666n, 10n])
    leaveContext(gone)
    expect(current()).toBe(0n)
    // The same for a call in a context, and on the threads of such calls.
    forceCurrent(666n)
    callInContext(11n)
    expect(current()).toBe(11n)
    expect(current()).toBe(0n)
    const lane = createLane()
    const run = (context: bigint | undefined, record: () => void) =>
      offThread({ ...(context === undefined ? {} : { context }), lane }, record)
    await run(undefined, () => forceCurrent(666n))
    await run(12n, () => storeCurrent(out.address))
    await run(undefined, () => storeCurrent(out.address + 8n))
    expect([...out.u64]).toEqual([12n, 0n])
    lane.dispose()
  })
})

describe('the context of a single call', () => {
  const out = NativeMemory.allocate(8)
  const seen = (): bigint => {
    storeCurrent(out)
    return out.u64[0] as bigint
  }

  test('is current in that call only', () => {
    callInContext(21n)
    expect(seen()).toBe(21n)
    expect(seen()).toBe(0n)
    const previous = enterContext(9n)
    callInContext(22n)
    expect(seen()).toBe(22n)
    expect(seen()).toBe(9n)
    callInContext(9n)
    expect(seen()).toBe(9n)
    leaveContext(previous)
  })

  test('is restored if disposed memory is refused', () => {
    const gone = NativeMemory.allocate(8)
    gone.dispose()
    callInContext(23n)
    expect(() => storeCurrent(gone)).toThrow(/NativeMemory/)
    expect(seen()).toBe(0n)
  })

  test('that cannot become current prevents the call, and its status is returned', () => {
    out.u64[0] = 5n
    callInContext(666n)
    expect(storeCurrent(out)).toBe(709)
    expect(out.u64[0]).toBe(5n)
  })

  test.each(['i32', 'u32', 'void', 'u8', 'f64'] as const)(
    'that cannot become current for a function that returns %s throws',
    (result) => {
      const call = library.bind('store_current', 0, 1, result)
      out.u64[0] = 5n
      callInContext(666n)
      putPointer(0, out, 'store_current', 'out')
      // Only a status result can contain the error.
      if (result === 'i32' || result === 'u32') expect(call()).toBe(709)
      else expect(call).toThrow(/^the context could not be made current: status 709$/)
      expect(out.u64[0]).toBe(5n)
    },
  )

  test('is restored if the arguments are refused or the symbol is missing', () => {
    callInContext(23n)
    expect(() => failWith(1.5)).toThrow(RangeError)
    expect(seen()).toBe(0n)
    callInContext(23n)
    expect(() => library.bind('absent', 0, 1)).toThrow()
    expect(seen()).toBe(0n)
  })

  test('travels with a recorded call to its thread', async () => {
    const cells = NativeMemory.allocate(24)
    await offThread({ context: 30n }, () => {
      storeCurrent(cells.address)
      callInContext(31n)
      storeCurrent(cells.address + 8n)
      storeCurrent(cells.address + 16n)
    })
    expect([...cells.u64]).toEqual([30n, 31n, 30n])
  })

  test('and argument block and recording are preserved by a nested call', async () => {
    const cells = NativeMemory.allocate(8)
    const status = library.bind('fail_with', 0, 1)
    const results = await offThread({ stopOnError: false }, () => {
      callInContext(40n)
      putPointer(0, cells, 'store_current', 'out')
      expect(nestedCall(() => putI32(0, 17, 'fail_with', 'code'), status)).toBe(17)
      library.bind('store_current', 0, 1)()
    })
    expect(results).toEqual([0])
    expect(cells.u64[0]).toBe(40n)
  })
})
