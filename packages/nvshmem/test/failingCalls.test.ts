import { join } from 'node:path'
import { Device } from '@shoal/driver'
import type { Registration, SymmetricBuffer, Team } from '@shoal/nvshmem'
import { UniqueId } from '@shoal/nvshmem'
import { nvshmem } from '@shoal/nvshmem-sys'
import { StatusError } from '@shoal/types'
import { beforeAll, expect, test } from 'vitest'
import { compileFailingLibrary, failNextOf } from '../../ffi/test/support/failingLibrary.js'
import { nativeMemoryKept } from '../../ffi/test/support/nativeMemoryKept.js'
import { libraries, libraryFolder } from '../../sim/src/index.js'
import { onePe } from './fixtures/onePe.js'

process.env['SHOAL_NVSHMEM_LIBRARY'] = compileFailingLibrary('nvshmem', join(libraryFolder(), libraries.nvshmem))
const pe = onePe()
const status = 7
const stream = null
let target: SymmetricBuffer<'f32'>
let other: SymmetricBuffer<'f32'>

beforeAll(async () => {
  target = await pe.session.allocate('f32', 4)
  other = await pe.session.allocate('f32', 4)
  // Allocate the objects that the driver package caches.
  await Device.get(0).synchronize()
})

/** A C function, a call that makes it, and an optional function that creates the call's arguments. */
type Case = readonly [name: string, call: (prepared: never) => unknown, prepare?: () => unknown]

const world = (): Team => pe.session.world
const moves = [
  ['broadcast', 'broadcast', { root: 0 }],
  ['fcollect', 'fcollect', {}],
  ['allToAll', 'alltoall', {}],
] as const
const reductions = [
  ['reduce', 'sum_reduce'],
  ['reduceScatter', 'sum_reducescatter'],
] as const

const cases: readonly Case[] = [
  ['nvshmemx_get_uniqueid', () => UniqueId.create()],
  ['nvshmem_barrier', () => pe.session.barrierAll()],
  ['nvshmem_barrier', () => pe.session.barrierAllSync()],
  ['nvshmemx_barrier_on_stream', () => pe.session.barrierAllOnStream({ stream })],
  ['nvshmem_team_sync', () => world().sync()],
  ['nvshmem_team_sync', () => world().syncSync()],
  ['nvshmemx_team_sync_on_stream', () => world().syncOnStream({ stream })],
  ['nvshmemx_team_sync_on_stream', () => Promise.all([world().barrier(), world().syncOnStream({ stream })])],
  ...moves.flatMap(([name, c, more]): Case[] => [
    [`nvshmem_float_${c}`, () => world()[name](target, other, more as never)],
    [`nvshmem_float_${c}`, () => world()[`${name}Sync`](target, other, more as never)],
    [`nvshmemx_float_${c}_on_stream`, () => world()[`${name}OnStream`](target, other, { ...more, stream } as never)],
  ]),
  ...reductions.flatMap(([name, c]): Case[] => [
    [`nvshmem_float_${c}`, () => world()[name](target, other)],
    [`nvshmem_float_${c}`, () => world()[`${name}Sync`](target, other)],
    [`nvshmemx_float_${c}_on_stream`, () => world()[`${name}OnStream`](target, other, { stream })],
  ]),
  ['nvshmem_team_split_strided', () => world().splitStrided({ start: 0, size: 1 })],
  ['nvshmem_team_split_2d', () => world().split2d({ xRange: 1 })],
  ['nvshmemx_team_get_uniqueid', () => pe.session.teamUniqueId()],
  [
    'nvshmemx_team_init',
    (id: bigint) => pe.session.createTeam({ id, peCount: 1, pe: 0 }),
    () => pe.session.teamUniqueId(),
  ],
  ['nvshmemx_buffer_register', () => pe.session.register(pe.memory())],
  ['nvshmemx_buffer_unregister', (made: Registration) => made.dispose(), () => pe.session.register(pe.memory())],
] as readonly Case[]

const named = cases.map(([name, call, prepare]) => ({ name, call, prepare }))
test.for(named)('an error of $name is thrown with its name', async ({ name, call, prepare }) => {
  const kept = await nativeMemoryKept(async () => {
    const prepared = (await prepare?.()) as never
    const wasCalled = failNextOf(nvshmem, name, status)
    const attempt = async (): Promise<unknown> => await call(prepared)
    const error = await attempt().catch((reason: unknown) => reason)
    expect(wasCalled()).toBe(true)
    expect(error).toBeInstanceOf(StatusError)
    expect(error).toMatchObject({ library: 'NVSHMEM', api: name, status })
    await Device.get(0).synchronize()
    expect(pe.session.waitingFor).toBeUndefined()
  })
  expect(kept).toEqual([])
})

test('a failed NVSHMEM allocation throws, for every way to allocate', async () => {
  const { session } = pe
  for (const [name, allocate] of [
    ['nvshmem_malloc', () => session.allocate('f32', 4)],
    ['nvshmem_calloc', () => session.allocate('f32', 4, { zeroed: true })],
    ['nvshmem_align', () => session.allocate('f32', 4, { alignment: 64 })],
  ] as const) {
    const wasCalled = failNextOf(nvshmem, name, 0)
    await expect(allocate()).rejects.toMatchObject({ api: name, code: 'NVSHMEMX_ERROR_OUT_OF_MEMORY' })
    expect(wasCalled()).toBe(true)
    await (await allocate()).dispose()
  }
  failNextOf(nvshmem, 'nvshmemx_buffer_register_symmetric', 0)
  await expect(session.registerSymmetric(pe.memory(), 'f32')).rejects.toBeInstanceOf(StatusError)
  // An address that is not aligned for elements of eight bytes.
  failNextOf(nvshmem, 'nvshmem_malloc', 4100)
  await expect(session.allocate('f64', 4)).rejects.toMatchObject({
    ...{ api: 'nvshmem_malloc', status: 7 },
    message: expect.stringContaining('the memory is not aligned for f64'),
  })
  failNextOf(nvshmem, 'nvshmem_ptr', 0)
  expect(await target.peer(0)).toBeUndefined()
  failNextOf(nvshmem, 'nvshmemx_mc_ptr', 4096)
  expect(await target.multicastAddress(session.world)).toBe(4096n)
})
