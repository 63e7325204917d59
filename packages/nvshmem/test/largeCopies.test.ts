import { describe, expect, test } from 'vitest'
import { copiedPerTurn } from '../../../tooling/config/src/copiedPerTurn.js'
import { onePe } from './fixtures/onePe.js'

const pe = onePe()
const megabyte = 1024 * 1024
const length = 2 * megabyte
const numbers = (first: number): Float32Array<ArrayBuffer> =>
  Float32Array.from({ length }, (_, index) => first + (index % 1000))

// Many times faster than toEqual.
const isSame = (one: unknown, other: Float32Array): boolean =>
  Buffer.compare(Buffer.from((one as Float32Array).buffer), Buffer.from(other.buffer)) === 0

describe('large copies', () => {
  test('let the event loop turn once per part', async () => {
    await using buffer = await pe.session.allocate('f32', length)
    const [here, there] = [numbers(1), new Float32Array(length)]
    const works: (() => Promise<unknown>)[] = [
      () => buffer.copyFrom(here),
      () => buffer.copyTo(there),
      () => buffer.toArray(),
      () => pe.session.put(buffer, here, { pe: 0 }),
      () => pe.session.get(there, buffer, { pe: 0 }),
    ]
    for (const work of works) expect(await copiedPerTurn(work), String(work)).toBeLessThanOrEqual(2 * megabyte)
    expect(isSame(there, here)).toBe(true)
  })

  test('keep their order among other calls', async () => {
    await using buffer = await pe.session.allocate('f32', length)
    const [first, second] = [numbers(1), numbers(2)]
    const done = [buffer.copyFrom(first), buffer.toArray(), pe.session.put(buffer, second, { pe: 0 }), buffer.toArray()]
    const [, afterFirst, , afterSecond] = await Promise.all(done)
    expect([isSame(afterFirst, first), isSame(afterSecond, second)]).toEqual([true, true])
  })

  test('reject if the array is detached during the copy, and later calls still run', async () => {
    await using buffer = await pe.session.allocate('f32', length)
    await buffer.fill(3)
    const array = numbers(1)
    const copied = buffer.copyFrom(array)
    const read = buffer.toArray()
    structuredClone(array.buffer, { transfer: [array.buffer] })
    await expect(copied).rejects.toThrow('SymmetricBuffer.copyFrom: source must keep its length')
    expect((await read)[length - 1]).toBe(3)
    const target = new Float32Array(length)
    const gone = buffer.copyTo(target)
    structuredClone(target.buffer, { transfer: [target.buffer] })
    await expect(gone).rejects.toThrow('SymmetricBuffer.copyTo: target must keep its length')
  })

  test('aborted before they begin do not leave the session stuck', async () => {
    await using buffer = await pe.session.allocate('f32', length)
    const ending = new AbortController()
    // The copy is still reading its bytes, one part per turn.
    const copied = buffer.copyFrom(numbers(1), { signal: ending.signal })
    const behind = pe.session.barrierAll()
    ending.abort()
    await expect(copied).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
    await behind
    expect(await buffer.fill(4)).toBe(buffer)
  })

  test('leave nothing behind after an abort', async () => {
    await using buffer = await pe.session.allocate('f32', length)
    const ending = new AbortController()
    const barrier = pe.session.barrierAll()
    const copied = buffer.copyFrom(numbers(1), { signal: ending.signal })
    ending.abort()
    await expect(copied).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
    await expect(buffer.copyFrom(numbers(2), { signal: ending.signal })).rejects.toMatchObject({
      code: 'SHOAL_ABORTED',
    })
    await barrier
    await buffer.copyFrom(numbers(4))
    expect((await buffer.toArray())[0]).toBe(4)
  })
})
