import { readFileSync } from 'node:fs'
import { useSoftwareDevice } from '@shoal/ffi'
import { Session, SessionExistsError, type SymmetricBuffer, type Team, UniqueId } from '@shoal/nvshmem'
import { DisposedError, memoryProtocol } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

useSoftwareDevice({ devices: 1 })

let session: Session
let floats: SymmetricBuffer<'f32'>
let words: SymmetricBuffer<'u64'>
let gone: Team

beforeAll(async () => {
  session = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
  floats = await session.allocate('f32', 8)
  words = await session.allocate('u64', 4)
  gone = (await session.world.splitStrided({ start: 0, size: 1 })) as Team
  await gone.dispose()
})

afterAll(() => session.finalize())

/** Hides a wrong type from the compiler. */
const anything = (value: unknown): never => value as never
const array = new Float32Array(8)
const host = { [memoryProtocol]: { version: 0, address: 0x1000n, byteLength: 32, deviceOrdinal: -1, context: 0n } }

const outOfMemory = { code: 'NVSHMEMX_ERROR_OUT_OF_MEMORY', message: expect.stringContaining('has room for') }
const noMapping = { code: 'NVSHMEMX_ERROR_INVALID_VALUE' }

type Refused = readonly [call: () => unknown, error: unknown]

/** Calls that end the process, crash or hang in NVSHMEM on hardware, with the errors of this package. */
const refused: { readonly [question: string]: Refused | string } = {
  queries: 'no call takes the number of a team: there are teams, and PEs that are in none get undefined',
  registration: [() => session.registerSymmetric(anything(host), 'f32'), noMapping],
  teams: [() => session.world.dispose(), TypeError],
  'start again': [() => Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() }), SessionExistsError],
  'early malloc': 'what allocates is a method of a session that has started',
  'early barrier': 'the same',
  'early barrier_all': 'the same',
  'early quiet': 'the same',
  'early atomic': 'the same',
  'early register': 'the same',
  'early team id': 'the same',
  'early module': 'the same',
  'id null': 'UniqueId.create has the memory for it',
  'init without attributes': 'Session.init has the memory for them',
  'set without attributes': 'the same',
  'malloc too much': [() => session.allocate('u8', 2 ** 45), outOfMemory],
  'calloc overflow': [() => session.allocate('u64', 2 ** 49, { zeroed: true }), outOfMemory],
  'free of host memory': 'only buffers of the heap can be disposed of',
  'free twice': [
    async () => {
      const buffer = await session.allocate('f32', 1)
      await buffer.dispose()
      await buffer.dispose() // does nothing
      await session.put(buffer, new Float32Array(1), { pe: 0 })
    },
    DisposedError,
  ],
  'put to PE 2': [() => session.put(floats, array, { pe: 1 }), RangeError],
  'put to PE -1': [() => session.put(floats, array, { pe: -1 }), RangeError],
  'put to host memory': [() => session.put(anything(host), array, { pe: 0 }), TypeError],
  'put to no memory': [() => session.put(anything(null), array, { pe: 0 }), TypeError],
  'put beyond the heap': [() => session.put(floats, new Float32Array(9), { pe: 0, count: 9 }), RangeError],
  'stride 0': [() => session.putStrided(floats, array, { pe: 0, count: 2, targetStride: 0 }), RangeError],
  'barrier of no team': [() => session.world.translate(0, anything(undefined)), TypeError],
  'barrier of team 29': [() => gone.barrier(), DisposedError],
  'team_n_pes 29': [() => gone.config(), DisposedError],
  'team_n_pes 1000': [() => session.world.translate(0, anything(1000)), TypeError],
  'broadcast root 2': [() => session.world.broadcast(floats, floats, { root: 1 }), RangeError],
  'reduce of no team': [() => gone.reduce(floats, floats), DisposedError],
}

/** Calls to which NVSHMEM answers at random, or reports a false success. */
const unanswered: { readonly [question: string]: Refused } = {
  'align odd': [() => session.allocate('f32', 1, { alignment: 24 }), RangeError],
  'ptr of PE -1': [() => floats.peer(-1), RangeError],
  'ptr of PE 2': [() => floats.peer(1), RangeError],
  'stride -1': [() => session.putStrided(floats, array, { pe: 0, count: 2, sourceStride: -1 }), RangeError],
  'signal operation 3': [
    () => session.putSignalOnStream(floats, floats, { pe: 0, signal: words, value: 1, op: anything(3), stream: null }),
    TypeError,
  ],
  'comparison 9': [
    () => session.signals.waitForSignalOnStream(words, { comparison: anything(9), value: 0, stream: null }),
    TypeError,
  ],
  'translate PE 2': [() => session.world.translate(1, session.shared), RangeError],
  'translate PE -1': [() => session.world.translate(-1, session.shared), RangeError],
  'split start -1': [() => session.world.splitStrided({ start: -1, size: 1 }), RangeError],
  'split start 2': [() => session.world.splitStrided({ start: 1, size: 1 }), RangeError],
  'split stride 0': [() => session.world.splitStrided({ start: 0, stride: 0, size: 2 }), RangeError],
  'split size 0': [() => session.world.splitStrided({ start: 0, size: 0 }), RangeError],
  'split size 3': [() => session.world.splitStrided({ start: 0, size: 2 }), RangeError],
  'split of no team': [() => gone.splitStrided({ start: 0, size: 1 }), DisposedError],
  'split 2d 0': [() => session.world.split2d({ xRange: 0 }), RangeError],
  'team init without id': [() => session.createTeam({ id: anything(undefined), peCount: 1, pe: 0 }), TypeError],
}

const calls = Object.entries({ ...refused, ...unanswered }).filter((each): each is [string, Refused] => {
  return typeof each[1] !== 'string'
})

describe('calls that end the process or never return in NVSHMEM on two H200s', () => {
  test('are all listed, with a refused call or a reason', () => {
    const recorded = new URL('../../../tooling/sweep/answers/nvshmem.json', import.meta.url)
    const ending = / (ends with|ends by signal|does not end)$/
    const names = Object.keys(JSON.parse(readFileSync(recorded, 'utf8')) as object)
    const endings = names.filter((name) => ending.test(name))
    expect(endings.map((name) => name.replace(ending, '')).sort()).toEqual(Object.keys(refused).sort())
  })

  test.for(calls)('%s: is refused before the call', async ([, [call, error]]) => {
    const attempt = async (): Promise<unknown> => await call()
    if (typeof error === 'function') await expect(attempt()).rejects.toBeInstanceOf(error)
    else await expect(attempt()).rejects.toMatchObject(error as object)
    expect(session.stuckIn).toBeUndefined()
    await session.barrierAll()
  })
})
