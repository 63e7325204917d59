import { inspect } from 'node:util'
import { type SymmetricBuffer, Team } from '@shoal/nvshmem'
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

const status = (code: string): object => ({ error: code })
const range = (length: number): number[] => Array.from({ length }, (_, index) => index)

describe('collectives of a Team', () => {
  test('refuse overlapping buffers of unequal lengths, and accept adjacent ones', async () => {
    const refused = (name: string): string => `Team.${name}: target and source overlap`
    for (const outcomes of await resultsOf('teams.overlaps', 2)) {
      expect(outcomes).toEqual({
        'fcollect behind': 'nothing',
        'reduceScatter behind': 'nothing',
        'fcollect in the second part': refused('fcollect'),
        'reduceScatter in the second part': expect.stringMatching(/^Team.reduceScatter: target and source overlap/),
        'fcollect before': 'nothing',
        'reduceScatter before': 'nothing',
        'fcollect into the first part': refused('fcollect'),
        'reduceScatter into the first part': expect.stringMatching(/^Team.reduceScatter: target and source overlap/),
      })
    }
  })

  test.for([2, 3])('copy elements of every dtype, by every method, over %i PEs', async (worldSize) => {
    expect(await resultsOf('teams.moves', worldSize)).toEqual(range(worldSize).map(() => 17 * 9))
  })

  test.for([2, 3])('reduce with every operation and dtype that NVSHMEM has, over %i PEs', async (worldSize) => {
    const arithmetic = 12
    const bitwise = 8
    const checks = (4 * arithmetic + 3 * bitwise) * 6
    const noBits = ['and', 'or', 'xor']
    const none = ['sum', 'prod', 'min', 'max', ...noBits]
    for (const result of await resultsOf('teams.reductions', worldSize)) {
      expect(result).toEqual({
        checks,
        refused: { f16: noBits, bf16: noBits, f32: noBits, f64: noBits, f8e4m3: none, f8e5m2: none, bool: none },
      })
    }
  })
})

describe('a Team', () => {
  test('can be split, translates PE numbers, and is destroyed once', async () => {
    const results = await resultsOf<Record<string, unknown>>('teams.splits', 4)
    for (const [rank, result] of results.entries()) {
      const isEven = rank % 2 === 0
      const [row, column] = [Math.floor(rank / 2), rank % 2]
      const rowSum = row === 0 ? 0b0011 : 0b1100
      const columnSum = column === 0 ? 0b0101 : 0b1010
      expect(result).toMatchObject({
        even: isEven ? [row, 2] : null,
        x: [column, 2],
        y: [row, 2],
        sums: isEven ? [0b0101, rowSum, columnSum] : [rowSum, columnSum],
        translated: isEven ? [2, 0] : null,
        config: isEven ? { contexts: 2 } : null,
        gone: isEven ? [status('SHOAL_DISPOSED'), true] : null,
        own: status('TypeError'),
      })
    }
  })

  test('can be made of any PEs with an id', async () => {
    expect(await resultsOf('teams.created', 3)).toEqual([null, [1, 2, 2], [0, 2, 2]])
  })

  test('has a name, a size and the number of this PE, and prints one line', async () => {
    const { world, shared, node, samePeIndex } = pe.session
    expect([world, shared, node, samePeIndex].map(({ name }) => name)).toEqual([
      'world',
      'shared',
      'node',
      'samePeIndex',
    ])
    expect(world).toBeInstanceOf(Team)
    expect(inspect(world)).toBe("Team { name: 'world', pe: 0, peCount: 1 }")
    const team = (await world.splitStrided({ start: 0, size: 1 })) as Team
    await team.dispose()
    expect(inspect(team)).toBe("Team { name: 'world[0, step 1, 1]', pe: 0, peCount: 1, disposed: true }")
  })

  test('stays usable if its disposal is refused', async () => {
    const team = (await pe.session.world.splitStrided({ start: 0, size: 1 })) as Team
    await expect(team.dispose({ timeout: -1 })).rejects.toThrow(RangeError)
    await expect(team.dispose({ timeout: anything('soon') })).rejects.toThrow(TypeError)
    await expect(team.dispose(anything(5))).rejects.toThrow(TypeError)
    await expect(team.dispose({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'SHOAL_ABORTED' })
    expect(team.disposed).toBe(false)
    await team.reduce(floats, floats)
    await team.dispose()
    await team.dispose()
    expect(team.disposed).toBe(true)
  })

  test('applies a separate timeout and signal to each concurrent disposal', async () => {
    const team = (await pe.session.world.splitStrided({ start: 0, size: 1 })) as Team
    const controller = new AbortController()
    const before = pe.session.barrierAll()
    const ending = team.dispose()
    await expect(team.dispose({ timeout: -1 })).rejects.toThrow('Team.dispose: timeout must be')
    const second = team.dispose({ signal: controller.signal })
    const third = team.dispose({ signal: new AbortController().signal, timeout: 60_000 })
    controller.abort('enough')
    await expect(second).rejects.toMatchObject({ code: 'SHOAL_ABORTED', cause: 'enough' })
    await Promise.all([before, ending, third, team.dispose()])
    // A disposal after the end waits for nothing.
    await team.dispose({ timeout: 60_000 })
  })

  test('is destroyed after earlier calls', async () => {
    const { session } = pe
    const team = (await session.world.splitStrided({ start: 0, size: 1 })) as Team
    const before = [
      session.barrierAll(),
      team.barrier(),
      team.reduce(floats, floats),
      team.barrierOnStream({ stream: null }),
    ]
    const disposed = team.dispose()
    await Promise.all([...before, disposed])
    await expect(team.barrier()).rejects.toMatchObject({ code: 'SHOAL_DISPOSED' })
  })

  refuses(pe, [
    [
      'a root that is not there',
      () => pe.session.world.broadcast(floats, floats, { root: 1 }),
      'Team.broadcast: root must be an integer from 0 to 0, not 1',
    ],
    ['a broadcast without a root', () => pe.session.world.broadcast(floats, floats, anything({})), TypeError],
    [
      'a root for a collective without root',
      () => pe.session.world.fcollect(floats, floats, anything({ root: 0 })),
      "Team.fcollect: options must have only the keys count, signal, timeout, not 'root'",
    ],
    ['buffers of two dtypes', () => pe.session.world.reduce(floats, anything(longs)), /elements of f32, source of u64/],
    [
      'buffers of two lengths',
      () => pe.session.world.reduce(floats, floats.slice(1)),
      /target has 8 elements and source 7/,
    ],
    ['a count beyond the buffers', () => pe.session.world.fcollect(floats, floats.slice(4), { count: 5 }), RangeError],
    [
      'buffers that overlap',
      () => pe.session.world.reduce(floats.slice(0, 4), floats.slice(2, 6)),
      /overlap without being the same/,
    ],
    ['one buffer where two are needed', () => pe.session.world.allToAll(floats, floats), /overlap/],
    [
      'an invalid operation',
      () => pe.session.world.reduce(floats, floats, { op: anything('avg') }),
      /Team.reduce: op must be 'sum', 'prod', .* or 'xor', not 'avg'/,
    ],
    [
      'an operation on the bits of floats',
      () => pe.session.world.reduce(floats, floats, { op: 'xor' }),
      /no xor of f32, only of i8/,
    ],
    [
      'memory that is not symmetric',
      () => pe.session.world.reduce(anything(pe.memory()), floats),
      'Team.reduce: target must be symmetric memory (see Session.allocate), not',
    ],
    ['PEs that are not in the team', () => pe.session.world.splitStrided({ start: 0, size: 2 }), RangeError],
    ['a first PE that is not in the team', () => pe.session.world.splitStrided({ start: 1, size: 1 }), RangeError],
    [
      'a stride that is no number',
      () => pe.session.world.splitStrided({ start: 0, size: 1, stride: anything('1') }),
      TypeError,
    ],
    ['rows without PEs', () => pe.session.world.split2d({ xRange: 0 }), RangeError],
    ['contexts that are no number', () => pe.session.world.split2d({ xRange: 1, contexts: anything('2') }), TypeError],
    [
      'an unknown option',
      () => pe.session.world.split2d(anything({ xRange: 1, yRange: 1 })),
      "Team.split2d: options must have only the keys xRange, contexts, signal, timeout, not 'yRange'",
    ],
    [
      'an id that is no bigint',
      () => pe.session.createTeam({ id: anything(1), peCount: 1, pe: 0 }),
      'Session.createTeam: id must be a bigint, not 1',
    ],
    ['a PE beyond the new team', () => pe.session.createTeam({ id: 1n, peCount: 1, pe: 1 }), RangeError],
    ['to translate a PE that is not there', () => pe.session.world.translate(1, pe.session.shared), RangeError],
    [
      'to translate into a value other than a team',
      () => pe.session.world.translate(0, anything({})),
      'Team.translate: into must be a Team, not',
    ],
    ["the disposal of NVSHMEM's own team", () => pe.session.world.dispose(), /lives as long as the session/],
    [
      'a timeout that is no number',
      () => pe.session.world.sync({ timeout: anything('1s') }),
      "Team.sync: timeout must be a number of milliseconds from 0 to 2147483647, not '1s'",
    ],
  ])
})
