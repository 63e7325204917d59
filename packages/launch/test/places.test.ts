import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
// Internal: tests the meaning of sets of variables, without the launcher that sets them.
import { detect } from '../src/environment/detect.js'
import { endpointFor, servedByLauncher } from '../src/environment/endpoint.js'
import { checkPlace, type ForeignPlace, type RankPlace } from '../src/environment/place.js'
import { readShoal } from '../src/environment/shoal.js'
import { type Environment, numberIn, textIn } from '../src/environment/variables.js'
import { LaunchEnvironmentError } from '../src/errors.js'
import { formatAddress, parseAddress } from '../src/rendezvous/address.js'
import { startHelper } from '../src/rendezvous/helper.js'
import { PrivateFolder } from '../src/rendezvous/privateFolder.js'
import { mostRanks } from '../src/rendezvous/state.js'

vi.mock('../src/rendezvous/helper.js', () => ({ startHelper: vi.fn(), inUse: 'in use' }))

const folder = mkdtempSync(join(tmpdir(), 'shoal-places-'))
afterAll(() => rmSync(folder, { recursive: true }))
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

const unknown = { localRank: undefined, localWorldSize: undefined, nodeRank: undefined }
const nowhere = { firstHost: undefined, isGuess: false }

describe('variables of torchrun', () => {
  const few = { RANK: '1', WORLD_SIZE: '4' }
  const place = { launcher: 'torchrun', rank: 1, worldSize: 4, ...unknown, ...nowhere, rankVariable: 'RANK' }
  const all = {
    ...{ ...few, LOCAL_RANK: '0', LOCAL_WORLD_SIZE: '2', GROUP_RANK: '1', MASTER_ADDR: 'node0', MASTER_PORT: '29500' },
    ...{ TORCHELASTIC_RUN_ID: 'run', TORCHELASTIC_RESTART_COUNT: '3' },
  }
  const whole = { ...place, localRank: 0, localWorldSize: 2, nodeRank: 1, firstHost: 'node0' }

  test.each<[Environment, object | undefined]>([
    [few, { ...place, isOneMachine: true, isGuess: true, jobId: '   ' }],
    [
      { ...few, MASTER_ADDR: 'a' },
      { ...place, isOneMachine: false, jobId: ' a  ', firstHost: 'a' },
    ],
    ...['localhost', '127.0.0.1', '127.9.9.9', '::1'].map((firstHost): [Environment, object] => [
      { ...few, MASTER_ADDR: firstHost },
      { ...place, isOneMachine: true, isGuess: true, jobId: ` ${firstHost}  `, firstHost },
    ]),
    ...['localhost2', '128.0.0.1', '::11', '1::1'].map((firstHost): [Environment, object] => [
      { ...few, MASTER_ADDR: firstHost },
      { ...place, isOneMachine: false, jobId: ` ${firstHost}  `, firstHost },
    ]),
    [all, { ...whole, isOneMachine: false, jobId: 'run node0 29500 3' }],
    [
      { ...all, LOCAL_WORLD_SIZE: '4' },
      { ...whole, localWorldSize: 4, isOneMachine: true, jobId: 'run node0 29500 3' },
    ],
    [{ WORLD_SIZE: '1' }, undefined],
  ])('are read from %j', (environment, wanted) => {
    expect(detect(environment)).toEqual(wanted)
  })

  test('without a number of ranks are refused', () => {
    const environment = { RANK: '1', TORCHELASTIC_RUN_ID: 'run' }
    expect(() => detect(environment)).toThrow('TORCHELASTIC_RUN_ID and RANK are set, and WORLD_SIZE is not set')
  })
})

describe('variables of Open MPI', () => {
  const names = ['RANK', 'SIZE', 'LOCAL_RANK', 'LOCAL_SIZE'].map((name) => `OMPI_COMM_WORLD_${name}`)
  const of = (...values: string[]) => Object.fromEntries(names.map((name, index) => [name, values[index]]))
  const place = {
    ...{ launcher: 'openmpi', rank: 3, worldSize: 4, localRank: 1, localWorldSize: 2, nodeRank: undefined, ...nowhere },
    ...{ isOneMachine: false, jobId: '', rankVariable: 'OMPI_COMM_WORLD_RANK' },
  }

  test.each([
    [{}, {}],
    [{ OMPI_MCA_ess_base_jobid: 'j' }, { jobId: 'j' }],
    [
      { OMPI_MCA_ess_base_jobid: 'j', PMIX_NAMESPACE: 'p', MASTER_ADDR: 'a' },
      { jobId: 'p', firstHost: 'a' },
    ],
    [
      { OMPI_COMM_WORLD_LOCAL_SIZE: '4', OMPI_COMM_WORLD_NODE_RANK: '7' },
      { localWorldSize: 4, isOneMachine: true },
    ],
  ])('are read from %j', (more, changed) => {
    expect(detect({ ...of('3', '4', '1', '2'), ...more })).toEqual({ ...place, ...changed })
  })

  test.each(names.slice(1))('are refused without %s', (name) => {
    const environment = { ...of('3', '4', '1', '2'), [name]: '' }
    expect(() => detect(environment)).toThrow(`OMPI_COMM_WORLD_RANK is set, and ${name} is not set`)
  })
})

describe('variables of PMI', () => {
  const few = { PMI_RANK: '1', PMI_SIZE: '2' }
  const place = { launcher: 'pmi', rank: 1, worldSize: 2, ...unknown, ...nowhere, jobId: '', rankVariable: 'PMI_RANK' }

  test.each([
    [few, { isOneMachine: true, isGuess: true }],
    [
      { ...few, MASTER_ADDR: 'a', PMI_JOBID: 'j' },
      { isOneMachine: false, firstHost: 'a', jobId: 'j' },
    ],
    [
      { ...few, MPI_LOCALRANKID: '0', MPI_LOCALNRANKS: '1' },
      { localRank: 0, localWorldSize: 1, isOneMachine: false },
    ],
    [
      { ...few, PMI_LOCAL_RANK: '1', PMI_LOCAL_SIZE: '2', MASTER_ADDR: 'a' },
      { localRank: 1, localWorldSize: 2, isOneMachine: true, firstHost: 'a' },
    ],
    [
      { ...few, MPI_LOCALRANKID: '1', MPI_LOCALNRANKS: '2', PMI_LOCAL_RANK: '0', PMI_LOCAL_SIZE: '1' },
      { localRank: 1, localWorldSize: 2, isOneMachine: true },
    ],
  ])('are read from %j', (environment, changed) => {
    expect(detect(environment)).toEqual({ ...place, ...changed })
  })

  test('are refused if incomplete', () => {
    expect(() => detect({ PMI_RANK: '1' })).toThrow('PMI_RANK is set, and PMI_SIZE is not set')
    expect(() => detect({ PMIX_RANK: '1' })).toThrow(
      'PMIX_RANK says that this is rank 1 of a job, and no variable says',
    )
    expect(() => detect({ PMI_SIZE: '2' })).toThrow('PMI_SIZE is set (2), and PMI_RANK is not set')
  })
})

describe('variables of Slurm', () => {
  const few = { SLURM_PROCID: '6', SLURM_STEP_NUM_TASKS: '7', SLURM_JOB_ID: '123456', SLURM_NNODES: '2' }
  const place = {
    ...{ launcher: 'slurm', rank: 6, worldSize: 7, ...unknown, ...nowhere, isOneMachine: false },
    ...{ jobId: '123456  0', rankVariable: undefined },
  }

  test.each<[Environment, object]>([
    [{}, {}],
    [{ SLURM_NNODES: '1', SLURM_JOB_NODELIST: 'b' }, { isOneMachine: true }],
    [{ SLURM_STEP_NUM_NODES: '1' }, { isOneMachine: true }],
    [{ SLURM_STEP_NUM_NODES: '3', SLURM_NNODES: '1' }, {}],
    [{ SLURM_STEP_ID: '5', SLURM_RESTART_COUNT: '2' }, { jobId: '123456 5 2' }],
    [
      { SLURM_LOCALID: '2', SLURM_NODEID: '1' },
      { localRank: 2, nodeRank: 1 },
    ],
    [{ SLURM_STEP_TASKS_PER_NODE: '4,3' }, {}],
    [
      { SLURM_NODEID: '1', SLURM_STEP_TASKS_PER_NODE: '4,3' },
      { nodeRank: 1, localWorldSize: 3 },
    ],
    [
      { SLURM_NODEID: '0', SLURM_STEP_TASKS_PER_NODE: '3(x2), 1' },
      { nodeRank: 0, localWorldSize: 3 },
    ],
    [
      { SLURM_NODEID: '2', SLURM_STEP_TASKS_PER_NODE: '3(x2), 1' },
      { nodeRank: 2, localWorldSize: 1 },
    ],
    [{ SLURM_NODEID: '3', SLURM_STEP_TASKS_PER_NODE: '3(x2), 1' }, { nodeRank: 3 }],
    [{ SLURM_NODEID: '0', SLURM_STEP_TASKS_PER_NODE: '3(x2' }, { nodeRank: 0 }],
    [{ SLURM_JOB_NODELIST: 'b[7-9],c' }, { firstHost: 'b7' }],
    [{ SLURM_JOB_NODELIST: 'b[7-9],c', SLURM_STEP_NODELIST: 'd,e' }, { firstHost: 'd' }],
    [{ SLURM_JOB_NODELIST: 'b', SLURM_STEP_NODELIST: 'd', MASTER_ADDR: 'a' }, { firstHost: 'a' }],
    [{ SLURM_JOB_ID: '9999' }, { jobId: '9999  0' }],
    [{ SLURM_JOB_ID: '10000' }, { jobId: '10000  0' }],
  ])('are read from %j', (more, changed) => {
    expect(detect({ ...few, ...more })).toEqual({ ...place, ...changed })
  })

  test('are refused if incomplete', () => {
    const because = 'SLURM_PROCID and SLURM_STEP_NUM_TASKS are set, and'
    expect(() => detect({ ...few, SLURM_JOB_ID: '' })).toThrow(`${because} SLURM_JOB_ID is not set`)
    expect(() => detect({ ...few, SLURM_NNODES: '' })).toThrow(`${because} SLURM_NNODES is not set`)
    expect(() => detect({ ...few, SLURM_PROCID: '' })).toThrow('and SLURM_PROCID is not set')
    expect(() => detect({ ...few, SLURM_STEP_NUM_TASKS: '' })).toThrow('and SLURM_STEP_NUM_TASKS is not set')
    expect(detect({ ...few, SLURM_STEP_NUM_TASKS: '', SLURM_PROCID: '0' })).toBeUndefined()
  })

  test('decide between Slurm and PMI by whether both agree', () => {
    const both = { ...few, PMI_RANK: '6', PMI_SIZE: '7', PMIX_RANK: '6' }
    expect(detect(both)?.launcher).toBe('slurm')
    expect(detect({ ...both, PMI_RANK: '5' })?.launcher).toBe('pmi')
    expect(detect({ ...both, PMI_SIZE: '8' })?.launcher).toBe('pmi')
  })
})

test('variables of shoal run are read', () => {
  const secret = 'x'.repeat(16)
  const few = { SHOAL_RENDEZVOUS: 'tcp://h:1', SHOAL_SECRET: secret, RANK: '1', WORLD_SIZE: '2' }
  const target = { address: { kind: 'tcp', host: 'h', port: 1 }, secret: Buffer.from(secret) }
  const place = { launcher: 'shoal', rank: 1, worldSize: 2, ...unknown, target }
  expect(readShoal(few)).toEqual(place)
  const more = { LOCAL_RANK: '3', LOCAL_WORLD_SIZE: '4', GROUP_RANK: '5' }
  expect(readShoal({ ...few, ...more })).toEqual({ ...place, localRank: 3, localWorldSize: 4, nodeRank: 5 })
  expect(readShoal({ ...few, SHOAL_RENDEZVOUS: '' })).toBeUndefined()
  const wrong = (changed: Environment) => () => readShoal({ ...few, ...changed })
  const because = 'SHOAL_RENDEZVOUS names the rendezvous of a job, and'
  expect(wrong({ RANK: '' })).toThrow(`${because} RANK is not set`)
  expect(wrong({ WORLD_SIZE: '' })).toThrow(`${because} WORLD_SIZE is not set`)
  expect(wrong({ SHOAL_SECRET: '' })).toThrow(`${because} SHOAL_SECRET is not set. Give all ranks the same random text`)
  // The limit counts bytes, not letters.
  expect(wrong({ SHOAL_SECRET: 'x'.repeat(15) })).toThrow('SHOAL_SECRET has 15 bytes; a secret has at least 16')
  expect(wrong({ SHOAL_SECRET: 'é'.repeat(8) })).not.toThrow()
})

describe('numbers in variables', () => {
  test.each([
    ['0', 0],
    ['007', 7],
    ['999999999', 999_999_999],
    ['', undefined],
    [undefined, undefined],
  ])('%j is read as %s', (text, value) => {
    expect(numberIn({ A: text }, 'A')).toBe(value)
    expect(textIn({ A: text }, 'A')).toBe(text === '' ? undefined : text)
  })

  test.each(['1000000000', '-1', '1.0', ' 1', '0x1', 'a'])('%j is refused', (text) => {
    expect(() => numberIn({ A: text }, 'A')).toThrow(
      new LaunchEnvironmentError(`A should be a whole number, it is '${text}'`),
    )
  })
})

describe('checkPlace()', () => {
  const place = (changed: Partial<RankPlace>): RankPlace => ({
    ...{ launcher: 'pmi', rank: 0, worldSize: 4, ...unknown },
    ...changed,
  })

  test.each<Partial<RankPlace>>([
    { rank: 3 },
    { worldSize: 1 },
    { worldSize: mostRanks },
    { localWorldSize: 1 },
    { localWorldSize: 4, localRank: 3 },
    { localRank: 3 },
    { localWorldSize: 2, localRank: 1, nodeRank: 77 },
  ])('accepts %j', (changed) => {
    expect(() => checkPlace(place(changed))).not.toThrow()
  })

  const [local, size] = ['MPI_LOCALNRANKS or PMI_LOCAL_SIZE', 'PMI_SIZE']
  test.each<[Partial<RankPlace>, string]>([
    [{ rank: 4 }, 'pmi says that this is rank 4 of 4 (PMI_RANK, PMI_SIZE)'],
    [{ worldSize: 0 }, 'pmi says that this is rank 0 of 0 (PMI_RANK, PMI_SIZE)'],
    [{ worldSize: mostRanks + 1 }, `pmi says that there are 1048577 ranks; a job has 1048576 at most (${size})`],
    [{ localWorldSize: 0 }, `pmi says that 0 of 4 ranks are on this machine (${local}, ${size})`],
    [{ localWorldSize: 5 }, `pmi says that 5 of 4 ranks are on this machine (${local}, ${size})`],
    [{ localRank: 4 }, `pmi says that this is local rank 4 of 4 (MPI_LOCALRANKID or PMI_LOCAL_RANK, ${size})`],
    [
      { localRank: 2, localWorldSize: 2 },
      `pmi says that this is local rank 2 of 2 (MPI_LOCALRANKID or PMI_LOCAL_RANK, ${local})`,
    ],
  ])('refuses %j', (changed, message) => {
    expect(() => checkPlace(place(changed))).toThrow(new LaunchEnvironmentError(message))
  })

  test.each([
    ['shoal', 'RANK, WORLD_SIZE'],
    ['torchrun', 'RANK, WORLD_SIZE'],
    ['openmpi', 'OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE'],
    ['slurm', 'SLURM_PROCID, SLURM_STEP_NUM_TASKS'],
  ] as const)('names %s as %s', (launcher, names) => {
    expect(() => checkPlace(place({ launcher, rank: 9 }))).toThrow(
      `${launcher} says that this is rank 9 of 4 (${names})`,
    )
  })
})

describe('the address of a rendezvous', () => {
  test.each([
    ['tcp://host:1', { kind: 'tcp', host: 'host', port: 1 }],
    ['tcp://1.2.3.4:65535', { kind: 'tcp', host: '1.2.3.4', port: 65_535 }],
    ['tcp://[::1]:40123', { kind: 'tcp', host: '::1', port: 40_123 }],
    ['unix:///a/b', { kind: 'unix', path: '/a/b' }],
  ] as const)('is accepted as %s', (text, address) => {
    expect(parseAddress(text)).toEqual(address)
    expect(formatAddress(address)).toBe(text)
  })

  test.each([
    'tcp://host:0',
    'tcp://host:65536',
    'tcp://host:123456',
    'tcp://a:b:1',
    'tcp://[]:1',
    'tcp://[[::1]]:1',
    'tcp://a]:1',
    'unix://a',
    'x',
  ])('is refused as %s', (text) => {
    expect(() => parseAddress(text)).toThrow(`'${text}' is no address of a rendezvous: tcp://HOST:PORT or unix:///PATH`)
  })
})

describe('the rendezvous of a job', () => {
  const secret = 'x'.repeat(16)
  const foreign: ForeignPlace = {
    ...{ launcher: 'openmpi', rank: 0, worldSize: 4, ...unknown, isOneMachine: false, isGuess: false, jobId: 'j' },
    ...{ rankVariable: undefined, firstHost: 'node0' },
  }
  const at = (changed: Partial<ForeignPlace>, environment: Environment = {}) =>
    endpointFor({ ...foreign, ...changed }, { SHOAL_SECRET: secret, ...environment })

  beforeEach(() => void vi.mocked(startHelper).mockReset().mockResolvedValue('ready'))

  test('served by the launcher is available at once', async () => {
    const target = { address: { kind: 'tcp', host: 'h', port: 1 }, secret: new Uint8Array(16) } as const
    const endpoint = servedByLauncher(foreign, target)
    expect(endpoint).toMatchObject({ place: 'tcp://h:1', isSecretFresh: true, isServedByLauncher: true })
    expect([endpoint.targets(), await endpoint.serve()]).toEqual([[target], undefined])
    expect(startHelper).not.toHaveBeenCalled()
  })

  test.each<[Partial<ForeignPlace>, Environment, number, string]>([
    [{}, { MASTER_PORT: '100' }, 101, '::'],
    [{}, { MASTER_PORT: '100', SHOAL_PORT: '7' }, 7, '::'],
    [{}, { SHOAL_PORT: '1', SHOAL_LISTEN: '10.0.0.1' }, 1, '10.0.0.1'],
    [{ firstHost: 'fd00::1' }, { SHOAL_PORT: '65535' }, 65_535, '::'],
  ])(
    'over several machines is at a port of the first machine: %j with %j',
    async (changed, environment, port, host) => {
      const endpoint = at(changed, environment)
      const address = { kind: 'tcp', host: changed.firstHost ?? 'node0', port } as const
      const target = { address, secret: Buffer.from(secret) }
      expect(endpoint).toMatchObject({ isSecretFresh: true, isServedByLauncher: false })
      expect(endpoint.place).toMatch(new RegExp(`^${formatAddress(address).replaceAll(/[[\]]/g, '\\$&')}( |$)`))
      // With an explicit port there are no other candidates.
      expect(endpoint.targets()).toHaveLength('SHOAL_PORT' in environment ? 1 : 8)
      expect(endpoint.targets()[0]).toEqual(target)
      await endpoint.serve()
      const task = { worldSize: 4, secret, address: { kind: 'tcp', host, port }, job: endpoint.who, folder: undefined }
      expect(vi.mocked(startHelper).mock.calls).toEqual([[task]])
      // Rank 0 knows the port by now.
      expect(endpoint.targets()).toEqual([target])
    },
  )

  test('over several machines uses the next port if the first is in use', async () => {
    vi.mocked(startHelper).mockResolvedValueOnce('in use')
    const endpoint = at({ firstHost: '127.0.0.1' }, { MASTER_PORT: '100' })
    const second = endpoint.targets()[1]
    await endpoint.serve()
    expect(endpoint.targets()).toEqual([second])
    vi.mocked(startHelper).mockResolvedValue('in use')
    const crowded = at({ firstHost: '127.0.0.1' }, { MASTER_PORT: '100' })
    await expect(crowded.serve()).rejects.toThrow(/at tcp:\/\/127\.0\.0\.1:101: EADDRINUSE, .*; nor at 7 other ports/)
  })

  const because = 'openmpi has started ranks on several machines'
  test.each<[Partial<ForeignPlace>, Environment, string]>([
    [{ firstHost: undefined }, {}, `${because}, and does not say where rank 0 is. Set MASTER_ADDR`],
    [{}, {}, `${because}: set SHOAL_PORT, on all ranks, to a port from 1 to 65535 that is free on node0`],
    [{}, { SHOAL_PORT: '0' }, 'that is free on node0; 0 is none'],
    [{}, { MASTER_PORT: '65535' }, 'that is free on node0; 65536 is none'],
    [{}, { MASTER_PORT: '5', SHOAL_SECRET: '' }, `${because}, and SHOAL_SECRET is not set`],
  ])('over several machines needs a known address: %j with %j', (changed, environment, words) => {
    expect(() => at(changed, environment)).toThrow(LaunchEnvironmentError)
    expect(() => at(changed, environment)).toThrow(words)
  })

  test('on one machine is in a folder that its ranks find and other jobs do not', async () => {
    vi.stubEnv('XDG_RUNTIME_DIR', folder)
    const here = { isOneMachine: true }
    const endpoint = at(here)
    expect(endpoint.targets()).toEqual([])
    expect(endpoint.isSecretFresh).toBe(false)
    await endpoint.serve()
    const path = endpoint.place.replace('unix://', '')
    const { secret: made } = endpoint.targets()[0]!
    expect(endpoint.targets()).toEqual([{ address: { kind: 'unix', path }, secret: made }])
    expect(made.byteLength).toBe(64)
    const task = {
      worldSize: 4,
      secret: String(made),
      address: { kind: 'unix', path },
      job: endpoint.who,
      folder: path.replace('/socket', ''),
    }
    expect(vi.mocked(startHelper).mock.calls).toEqual([[task]])
    // The same variables with another secret mean the same place.
    expect(at(here).place).toBe(endpoint.place)
    await at(here).serve()
    expect(endpoint.targets()[0]!.secret).not.toEqual(made)
    const others = [
      at({ ...here, jobId: 'k' }),
      at({ ...here, worldSize: 5 }),
      at({ ...here, launcher: 'pmi' }),
      at({ ...here, rankVariable: 'NOBODY_HAS_THIS' }),
      at(here, { SHOAL_JOB_ID: 'named' }),
    ]
    expect(new Set([endpoint, ...others].map(({ place }) => place)).size).toBe(6)
    // An explicit job id overrides all others.
    expect(at({ ...here, jobId: 'k' }, { SHOAL_JOB_ID: 'named' }).place).toBe(others[4]?.place)
  })

  test("on one machine is in the system's folder for user sockets", () => {
    const baseOf = () => new PrivateFolder('x').path.replace(/\/shoal-\d+\/[\da-f]{24}$/, '')
    vi.stubEnv('TMPDIR', folder)
    for (const [runtime, base] of [
      ['/', ''],
      [join(folder, 'nothing'), folder],
      [import.meta.filename, folder],
      [undefined, folder],
    ]) {
      vi.stubEnv('XDG_RUNTIME_DIR', runtime)
      expect(baseOf()).toBe(base)
    }
    // Socket names are short: this is the longest.
    const own = `/shoal-${process.getuid?.()}/${'x'.repeat(24)}/socket`.length
    for (const [length, base] of [
      [100 - own, `/${'a'.repeat(99 - own)}`],
      [101 - own, '/tmp'],
    ] as const) {
      vi.stubEnv('XDG_RUNTIME_DIR', undefined)
      vi.stubEnv('TMPDIR', `/${'a'.repeat(length - 1)}`)
      expect(baseOf()).toBe(base)
    }
  })
})
