import { inspect } from 'node:util'
import type { Session, SymmetricBuffer } from '@shoal/nvshmem'
import { defineArray, defineStruct, defineTuple, memoryProtocol } from '@shoal/types'
import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import { resultsOf } from './fixtures/job.js'
import { anything, onePe, refuses } from './fixtures/onePe.js'

const pe = onePe()
const Particle = defineStruct('Particle', { id: 'u32', mass: 'f64' })
const Wide = defineStruct('Wide', { x: 'f32' }, { align: 256 })
let particles: SymmetricBuffer<typeof Particle>
let others: SymmetricBuffer<typeof Particle>
let words: SymmetricBuffer<'u32'>

beforeAll(async () => {
  particles = await pe.session.allocate(Particle, 3, { zeroed: true })
  others = await pe.session.allocate(Particle, 3, { zeroed: true })
  words = await pe.session.allocate('u32', 12)
})

describe('symmetric memory of structs, arrays and tuples', () => {
  test('is transferred between PEs by every transfer and data collective', async () => {
    expect(await resultsOf('heap.compounds', 2)).toEqual([[], []])
  })

  test('keeps its type, and appears as bytes to other packages', async () => {
    expect(particles).toMatchObject({ dtype: Particle, length: 3, byteLength: 48 })
    expect(particles[memoryProtocol]).not.toHaveProperty('dtype')
    expect(particles[memoryProtocol]).toMatchObject({ address: particles.address, byteLength: 48 })
    expect(inspect(particles)).toBe("SymmetricBuffer { dtype: 'Particle', length: 3, pe: 0, deviceOrdinal: 0 }")
    expect(inspect(await particles.peer(0))).toBe("PeerMemory { pe: 0, dtype: 'Particle', length: 3 }")
    expect(particles.toArraySync()).toEqual(Array.from({ length: 3 }, () => ({ id: 0, mass: 0 })))
    expect(particles.slice(1).address).toBe(particles.address + 16n)
    const bytes = particles.reinterpret('u8')
    expect([bytes.length, bytes.reinterpret(defineArray('f64', 3)).length]).toEqual([48, 2])
  })

  test("is aligned for a type that needs more than the heap's alignment", async () => {
    for (let round = 0; round < 3; round += 1) {
      const buffer = await pe.session.allocate(Wide, 1)
      expect(buffer.address % 256n).toBe(0n)
      await pe.session.allocate('u8', 1)
    }
  })

  test('may have no elements', async () => {
    const empty = await pe.session.allocate(defineTuple(['u8', 'f32']), 0)
    expect([await empty.toArray(), empty.copyFromSync([]).length]).toEqual([[], 0])
    await empty.dispose()
  })

  test('has typed elements (checked by tsc)', async () => {
    expectTypeOf(await particles.toArray()).toEqualTypeOf<{ id: number; mass: number }[]>()
    expectTypeOf<Parameters<Session['put']>[0]>().toEqualTypeOf<SymmetricBuffer>()
    // @ts-expect-error A field is missing.
    expect(() => particles.fillSync({ id: 1 })).toThrow('SymmetricBuffer.fillSync: value: Particle.mass is missing')
  })

  const byDType = "must be memory of a dtype (reinterpret() it), not 'Particle'"
  refuses(pe, [
    [
      'a list with a wrong struct',
      () => particles.copyFrom([{ id: -1, mass: 0 }] as never),
      /copyFrom: source: Particle.id/,
    ],
    ['a list of another length', () => particles.copyFrom([{ id: 1, mass: 0 }]), RangeError],
    [
      'floats for structs',
      () => particles.copyFrom(anything(new Float64Array(6))),
      /must be a Uint8Array \(elements of Particle\)/,
    ],
    ['a list to copy into', () => particles.copyTo(anything([])), /copyTo: target must be a Uint8Array/],
    ['a value for fill', () => particles.fill(anything(5)), 'SymmetricBuffer.fill: value: Particle must be an object'],
    [
      'an element',
      () => pe.session.getElement(anything(particles), { pe: 0 }),
      `Session.getElement: source ${byDType}`,
    ],
    ['an atomic', () => pe.session.atomics.increment(anything(particles), { pe: 0 }), `target ${byDType}`],
    ['a signal', () => pe.session.signals.fetch(anything(particles)), `Signals.fetch: signal ${byDType}`],
    [
      'words to wait for',
      () =>
        pe.session.signals.waitUntilAllOnStream(
          anything(particles),
          anything({ comparison: '==', value: 1, stream: null }),
        ),
      `variables ${byDType}`,
    ],
    ['a reduction', () => pe.session.world.reduce(particles, others), `Team.reduce: target ${byDType}`],
    ['a scattered reduction', () => pe.session.world.reduceScatter(particles, others), `target ${byDType}`],
    [
      'steps',
      () => pe.session.putStrided(particles, others, { pe: 0, count: 1 }),
      `Session.putStrided: target ${byDType}`,
    ],
    [
      'two types',
      () => pe.session.world.fcollect(anything(words), particles),
      'target has elements of u32, source of Particle',
    ],
    ['another length', () => pe.session.put(particles, new Uint8Array(47), { pe: 0 }), RangeError],
    ['too many', () => pe.session.put(particles, others, { pe: 0, count: 4 }), '4 elements of Particle are 64 bytes'],
    ['no element type', () => pe.session.allocate(anything(['f32', 3]), 1), /Session.allocate: dtype must be one of/],
    [
      'bytes that are no structs',
      () => words.slice(1).reinterpret(Particle),
      /reinterpret: dtype must be one that 44 bytes .* not 'Particle'/,
    ],
  ])
})
