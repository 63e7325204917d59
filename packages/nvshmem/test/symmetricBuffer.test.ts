import { inspect } from 'node:util'
import { SymmetricBuffer } from '@shoal/nvshmem'
import { DisposedError, memoryProtocol } from '@shoal/types'
import { beforeAll, describe, expect, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'
import { anything, onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()
let floats: SymmetricBuffer<'f32'>
let longs: SymmetricBuffer<'u64'>

beforeAll(async () => {
  floats = await pe.session.allocate('f32', 8)
  longs = await pe.session.allocate('u64', 4)
})

describe('SymmetricBuffer', () => {
  test('has a type, a length, an address and a device, and answers the memory protocol', () => {
    expect(floats).toBeInstanceOf(SymmetricBuffer)
    expect(floats).toMatchObject({ dtype: 'f32', length: 8, byteLength: 32, deviceOrdinal: 0, disposed: false })
    expect(floats[memoryProtocol]).toMatchObject({ address: floats.address, byteLength: 32, dtype: 'f32', length: 8 })
  })

  test('prints in one line', async () => {
    const buffer = await pe.session.allocate('i32', 2)
    const facts = "SymmetricBuffer { dtype: 'i32', length: 2, pe: 0, deviceOrdinal: 0"
    expect(inspect(buffer)).toBe(`${facts} }`)
    await buffer.dispose()
    expect(inspect(buffer)).toBe(`${facts}, disposed: true }`)
  })

  test('can be copied in and out, viewed, filled and resized', async () => {
    for (const result of await resultsOf('heap.copies', 2)) {
      expect(result).toMatchObject({
        filled: [1.5, 1.5, 1.5, 1.5, 1.5, 1.5],
        copied: [1, 2, 3, 4, 5, 6],
        mixed: [1, 2, 20, 30, 5, 6],
        back: [-5, -6],
        bits: ['13830554455654793216n'],
        filledOthers: [
          [0x3e00, 0x3e00, 0x3e00],
          ['-2n', '-2n'],
        ],
        resized: [-1, -2, -3, -4, -5, -6],
        old: { error: 'SHOAL_DISPOSED' },
        after: { error: 'SHOAL_DISPOSED' },
      })
    }
  })

  test('returns arrays over separate memory', async () => {
    let array: Float32Array<ArrayBuffer> = await floats.toArray()
    array = floats.toArraySync()
    expect([array.buffer instanceof ArrayBuffer, array.buffer.byteLength]).toEqual([true, 32])
  })

  test('accepts a length as a bigint', async () => {
    const buffer = await pe.session.allocate('f32', anything(4n))
    expect([buffer.length, buffer.byteLength]).toEqual([4, 16])
    buffer.fillSync(3)
    const longer = await buffer.resize(anything(6n))
    expect(longer.length).toBe(6)
    expect(Array.from(longer.slice(0, 4).toArraySync())).toEqual([3, 3, 3, 3])
    await longer.dispose()
  })

  test('of no elements exists, copies nothing, and works in all operations', async () => {
    const { session } = pe
    const empty = await session.allocate('complex128', 0, { zeroed: true })
    expect([empty.length, empty.byteLength, empty.address > 0n]).toEqual([0, 0, true])
    expect(await (await empty.copyFrom(new Float64Array(0))).toArray()).toEqual(new Float64Array(0))
    expect(empty.copyFromSync(new Float64Array(0)).fillSync(anything(1)).toArraySync()).toEqual(new Float64Array(0))
    await empty.copyTo(empty.slice())
    await session.put(empty, new Float64Array(0), { pe: 0 })
    session.getSync(new Float64Array(0), empty, { pe: 0 })
    await session.putOnStream(empty, empty.slice(), { pe: 0, stream: null })
    await session.world.broadcast(empty, empty, { root: 0 })
    const none = empty.reinterpret('f32')
    await session.world.reduce(none, none)
    expect((await empty.peer(0))?.length).toBe(0)
    const grown = await empty.resize(2)
    expect([empty.disposed, grown.byteLength]).toEqual([true, 32])
    const shrunk = await grown.resize(0)
    expect(shrunk.length).toBe(0)
    await shrunk.dispose()
    await expect(session.getElement(none, { pe: 0 })).rejects.toThrow(DisposedError)
    await expect(session.getElement(longs.slice(1, 1), { pe: 0 })).rejects.toThrow(
      /source must be memory with elements/,
    )
  })

  test('reinterprets a part of a buffer at the offset of that part', async () => {
    const { session } = pe
    const buffer = await session.allocate('u32', 8, { zeroed: true })
    buffer.copyFromSync(Uint32Array.from({ length: 8 }, (_, index) => index))
    const part = buffer.slice(2, 6)
    for (const [dtype, length] of [
      ['u8', 16],
      ['i32', 4],
      ['u64', 2],
    ] as const) {
      const view = part.reinterpret(dtype)
      expect([view.address, view.length, view.byteLength]).toEqual([part.address, length, 16])
    }
    expect(part.reinterpret('u64').toArraySync()).toEqual(BigUint64Array.of(0x3_0000_0002n, 0x5_0000_0004n))
    // A peer's address has the same offset.
    await session.putElement(part.slice(1).reinterpret('i32'), -7, { pe: 0 })
    expect(Array.from(buffer.toArraySync())).toEqual([0, 1, 2, 0xff_ff_ff_f9, 4, 5, 6, 7])
    await buffer.dispose()
  })

  test('is refused after dispose(), and its views too; a second dispose() does nothing', async () => {
    const { session } = pe
    const buffer = await session.allocate('f32', 8)
    const view = buffer.slice(2)
    await buffer.dispose()
    await buffer.dispose()
    expect([buffer.disposed, view.disposed]).toEqual([true, true])
    expect(() => view.address).toThrow(DisposedError)
    expect(() => view[memoryProtocol]).toThrow(DisposedError)
    await expect(session.put(view, new Float32Array(6), { pe: 0 })).rejects.toThrow(DisposedError)
    await expect(session.world.reduce(floats, buffer)).rejects.toThrow(DisposedError)
  })

  test('is disposed by await using', async () => {
    let seen: SymmetricBuffer | undefined
    {
      await using buffer = await pe.session.allocate('f32', 1)
      seen = buffer
    }
    expect(seen.disposed).toBe(true)
  })

  test('stays usable if its disposal is refused', async () => {
    const buffer = await pe.session.allocate('f32', 4)
    await expect(buffer.dispose({ timeout: -1 })).rejects.toThrow(RangeError)
    await expect(buffer.dispose({ timeout: anything('soon') })).rejects.toThrow(TypeError)
    await expect(buffer.dispose(anything(5))).rejects.toThrow(TypeError)
    await expect(buffer.dispose({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
    expect(buffer.disposed).toBe(false)
    await buffer.fill(2)
    expect(Array.from(await buffer.toArray())).toEqual([2, 2, 2, 2])
    await buffer.dispose()
  })

  describe('made by Session.allocate', () => {
    const allocate = (length: unknown, options?: unknown, dtype: unknown = 'f32'): (() => unknown) => {
      return () => pe.session.allocate(anything(dtype), anything(length), anything(options))
    }
    refuses(pe, [
      ['an unknown dtype', allocate(1, undefined, 'f33'), /Session.allocate: dtype/],
      ['a negative length', allocate(-1), 'Session.allocate: length must be an integer from 0 to'],
      ['half an element', allocate(1.5), TypeError],
      ['more than numbers count', allocate(2 ** 52, undefined, 'f64'), RangeError],
      [
        'an odd alignment',
        allocate(1, { alignment: 24 }),
        'Session.allocate: alignment must be a power of two, not 24',
      ],
      ['an alignment that is no number', allocate(1, { alignment: '16' }), TypeError],
      ['an alignment of more than 1 GiB', allocate(1, { alignment: 2 ** 31 }), RangeError],
      ['zeroed that is no boolean', allocate(1, { zeroed: Number.NaN }), 'zeroed must be a boolean, not NaN'],
      ['an alignment of zeroed memory', allocate(1, { alignment: 64, zeroed: true }), /exclude each other/],
      [
        'more than the device has',
        allocate(2 ** 45, undefined, 'u8'),
        /NVSHMEMX_ERROR_OUT_OF_MEMORY.* 35184372088832 bytes of/,
      ],
      ['invalid options', allocate(1, null), 'Session.allocate: options must be a plain object such as { alignment,'],
      [
        'an unknown option',
        allocate(1, { align: 64 }),
        "only the keys alignment, zeroed, signal, timeout, not 'align'",
      ],
    ])
  })

  refuses(pe, [
    [
      'a slice beyond the buffer',
      () => floats.slice(0, 9),
      'SymmetricBuffer.slice: end must be an integer from -8 to 8, not 9',
    ],
    [
      'a slice that ends before it starts',
      () => floats.slice(3, 2),
      'end must be at least start, which is element 3, not 2',
    ],
    ['a slice from a bigint', () => floats.slice(anything(-1n)), 'SymmetricBuffer.slice: start must be an integer'],
    ['a slice to a value other than a number', () => floats.slice(0, anything(Symbol('end'))), TypeError],
    ['elements that do not fit', () => floats.slice(1).reinterpret('f64'), RangeError],
    [
      'a copy from an array of another length',
      () => floats.copyFrom(new Float32Array(7)),
      /source has 28 bytes, the buffer 32/,
    ],
    [
      'a copy to an array of another type',
      () => floats.copyTo(anything(new Int32Array(8))),
      'SymmetricBuffer.copyTo: target must be a Float32Array (elements of f32) or memory',
    ],
    ['a value that does not fit', () => longs.fill(-1n), RangeError],
    ['null as the options of a wait', () => floats.toArray(anything(null)), TypeError],
    [
      'an unknown option of a wait',
      () => floats.toArray(anything({ stream: null })),
      "SymmetricBuffer.toArray: options must have only the keys signal, timeout, not 'stream'",
    ],
    ['the disposal of a view', () => floats.slice(1).dispose(), 'a view owns no memory'],
    ['the resizing of a view', () => floats.slice(1).resize(3), /a view cannot be resized/],
    ['resizing to a negative length', () => floats.resize(-1), RangeError],
    ['resizing with invalid options', () => floats.resize(4, anything(null)), 'SymmetricBuffer.resize: options must'],
    ['resizing with an odd alignment', () => floats.resize(4, { alignment: 24 }), /power of two/],
    ['a multicast address of no team', () => floats.multicastAddress(anything(undefined)), /team must be a Team/],
    [
      'a multicast address of a value other than a team',
      () => floats.multicastAddress(anything({})),
      /team must be a Team/,
    ],
  ])
})
