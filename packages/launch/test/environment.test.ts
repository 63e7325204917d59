import { existsSync, readFileSync } from 'node:fs'
import { bootstrap, LaunchEnvironmentError } from '@shoal/launch'
import { describe, expect, test } from 'vitest'
// Internal: tests which launcher a set of variables means, without the launcher.
import { detect } from '../src/environment/detect.js'
import { deviceOrdinalIn } from '../src/environment/deviceOrdinal.js'
import { endpointFor } from '../src/environment/endpoint.js'
import { launcherProcess } from '../src/environment/launcherProcess.js'
import { firstHostOf, tasksOfNode } from '../src/environment/slurmLists.js'

const torchrun = {
  RANK: '5',
  WORLD_SIZE: '8',
  LOCAL_RANK: '1',
  LOCAL_WORLD_SIZE: '4',
  GROUP_RANK: '1',
  MASTER_ADDR: 'node0',
  MASTER_PORT: '29500',
  TORCHELASTIC_RUN_ID: 'none',
  TORCHELASTIC_RESTART_COUNT: '0',
}
const openMpi = {
  OMPI_COMM_WORLD_RANK: '3',
  OMPI_COMM_WORLD_SIZE: '4',
  OMPI_COMM_WORLD_LOCAL_RANK: '3',
  OMPI_COMM_WORLD_LOCAL_SIZE: '4',
  OMPI_COMM_WORLD_NODE_RANK: '3',
  PMIX_NAMESPACE: '1501167617',
  PMIX_RANK: '3',
}
const hydra = { PMI_RANK: '1', PMI_SIZE: '2', MPI_LOCALRANKID: '1', MPI_LOCALNRANKS: '2', PMI_FD: '6' }
const slurm = {
  SLURM_JOB_ID: '123456',
  SLURM_STEP_ID: '0',
  SLURM_PROCID: '6',
  SLURM_LOCALID: '2',
  SLURM_NODEID: '1',
  SLURM_STEP_NUM_TASKS: '7',
  SLURM_STEP_NUM_NODES: '2',
  SLURM_STEP_TASKS_PER_NODE: '4,3',
  SLURM_STEP_NODELIST: 'gpu[03-04]',
}

test('reads the variables of torchrun', () => {
  expect(detect(torchrun)).toMatchObject({
    launcher: 'torchrun',
    rank: 5,
    worldSize: 8,
    localRank: 1,
    localWorldSize: 4,
    nodeRank: 1,
    isOneMachine: false,
    firstHost: 'node0',
  })
  expect(detect({ ...torchrun, LOCAL_WORLD_SIZE: '8' })?.isOneMachine).toBe(true)
})

test('reads the variables of torchrun without torchrun', () => {
  const few = { RANK: '0', WORLD_SIZE: '2' }
  expect(detect(few)).toMatchObject({ launcher: 'torchrun', rank: 0, isOneMachine: true })
  expect(detect({ ...few, MASTER_ADDR: '127.0.0.1' })?.isOneMachine).toBe(true)
  expect(detect({ ...few, MASTER_ADDR: 'node0' })?.isOneMachine).toBe(false)
})

test('reads the variables of Open MPI', () => {
  expect(detect(openMpi)).toMatchObject({
    launcher: 'openmpi',
    rank: 3,
    worldSize: 4,
    localRank: 3,
    localWorldSize: 4,
    // The launcher does not report it; the variable of that name is the local rank.
    nodeRank: undefined,
    isOneMachine: true,
  })
})

test('reads the variables of Hydra', () => {
  expect(detect(hydra)).toMatchObject({ launcher: 'pmi', rank: 1, worldSize: 2, localRank: 1, isOneMachine: true })
  expect(detect({ PMI_RANK: '1', PMI_SIZE: '2' })).toMatchObject({ localRank: undefined, isOneMachine: true })
  expect(detect({ PMI_RANK: '1', PMI_SIZE: '2', MASTER_ADDR: 'node0' })?.isOneMachine).toBe(false)
})

test('reads the variables of Slurm', () => {
  expect(detect(slurm)).toMatchObject({
    launcher: 'slurm',
    rank: 6,
    worldSize: 7,
    localRank: 2,
    localWorldSize: 3,
    nodeRank: 1,
    isOneMachine: false,
    firstHost: 'gpu03',
  })
  expect(detect({ ...slurm, SLURM_STEP_NUM_NODES: '1' })?.isOneMachine).toBe(true)
})

test('the script of a batch job is not a rank', () => {
  expect(
    detect({ SLURM_JOB_ID: '1', SLURM_PROCID: '0', SLURM_LOCALID: '0', SLURM_NTASKS: '8', SLURM_NNODES: '2' }),
  ).toBe(undefined)
})

test.each([
  ['mpirun within a task of srun', { ...slurm, ...openMpi }, 'openmpi'],
  ['torchrun within a task of srun', { ...slurm, ...torchrun }, 'torchrun'],
  ['srun --mpi=pmi2', { ...slurm, PMI_RANK: '6', PMI_SIZE: '7' }, 'slurm'],
  ['the proxies of Hydra, started by srun', { ...slurm, PMI_RANK: '1', PMI_SIZE: '64' }, 'pmi'],
  ['srun --mpi=pmix', { ...slurm, PMIX_RANK: '6' }, 'slurm'],
])('%s: the innermost launcher is used', (_, environment, launcher) => {
  expect(detect(environment)?.launcher).toBe(launcher)
})

test.each([
  ['gpu03', 'gpu03'],
  ['gpu[03-05,07],login1', 'gpu03'],
  ['a,b', 'a'],
  ['rack[1-2]-node[5-6],x', 'rack1-node5'],
  ['n[7]-ib', 'n7-ib'],
  ['', undefined],
])('finds the first host of %s', (list, host) => {
  expect(firstHostOf(list)).toBe(host)
})

test('finds the tasks per node of Slurm', () => {
  expect([0, 1, 2, 3].map((node) => tasksOfNode('4(x2),3', node))).toEqual([4, 4, 3, undefined])
  expect(tasksOfNode('many', 0)).toBeUndefined()
})

test.each<[Record<string, string>, string]>([
  [{ SHOAL_RENDEZVOUS: 'tcp://127.0.0.1:1', RANK: '0' }, 'WORLD_SIZE is not set'],
  [{ SHOAL_RENDEZVOUS: 'tcp://127.0.0.1:1', RANK: '0', WORLD_SIZE: '2' }, 'SHOAL_SECRET is not set'],
  [{ SHOAL_RENDEZVOUS: 'tcp://127.0.0.1:1', RANK: '0', WORLD_SIZE: '2', SHOAL_SECRET: 'short' }, 'has 5 bytes'],
  [{ RANK: '2', WORLD_SIZE: '2' }, 'this is rank 2 of 2 (RANK, WORLD_SIZE)'],
  [{ RANK: '0', WORLD_SIZE: '0' }, 'this is rank 0 of 0'],
  [{ RANK: '-1', WORLD_SIZE: '2' }, "RANK should be a whole number, it is '-1'"],
  [{ RANK: 'one', WORLD_SIZE: '2' }, "RANK should be a whole number, it is 'one'"],
  [{ RANK: '0', WORLD_SIZE: '2e9' }, 'WORLD_SIZE should be a whole number'],
  [{ ...torchrun, LOCAL_RANK: '4' }, 'this is local rank 4 of 4 (LOCAL_RANK, LOCAL_WORLD_SIZE)'],
  [{ ...torchrun, LOCAL_WORLD_SIZE: '9' }, '9 of 8 ranks are on this machine (LOCAL_WORLD_SIZE, WORLD_SIZE)'],
  [{ SHOAL_DEVICE_ORDINAL: 'first' }, "SHOAL_DEVICE_ORDINAL should be a whole number, it is 'first'"],
  [{ ...hydra, PMI_RANK: '2' }, 'this is rank 2 of 2 (PMI_RANK, PMI_SIZE)'],
  [{ ...slurm, SLURM_PROCID: '7' }, 'this is rank 7 of 7 (SLURM_PROCID, SLURM_STEP_NUM_TASKS)'],
  [{ ...openMpi, OMPI_COMM_WORLD_LOCAL_RANK: '4' }, '(OMPI_COMM_WORLD_LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_SIZE)'],
  [{ OMPI_COMM_WORLD_RANK: '0' }, 'OMPI_COMM_WORLD_SIZE is not set'],
  [{ PMI_RANK: '0' }, 'PMI_SIZE is not set'],
  [{ SLURM_PROCID: '0', SLURM_STEP_NUM_TASKS: '2' }, 'SLURM_JOB_ID is not set'],
  [{ PMIX_RANK: '1' }, 'no variable says how many ranks it has'],
  [torchrun, 'torchrun has started ranks on several machines, and SHOAL_SECRET is not set'],
  [{ ...openMpi, OMPI_COMM_WORLD_SIZE: '8' }, 'Set MASTER_ADDR'],
  [{ ...openMpi, OMPI_COMM_WORLD_SIZE: '8', MASTER_ADDR: 'node0' }, 'set SHOAL_PORT'],
  [{ ...openMpi, OMPI_COMM_WORLD_SIZE: '8', MASTER_ADDR: 'node0', SHOAL_PORT: '65536' }, '65536 is none'],
  [{ ...openMpi, OMPI_COMM_WORLD_SIZE: '8', MASTER_ADDR: 'node0', SHOAL_PORT: '0' }, '0 is none'],
])('%j is refused with a reason', async (environment, words) => {
  const error = await bootstrap({ environment, timeout: 1_000 }).catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(LaunchEnvironmentError)
  expect((error as Error).message).toContain(words)
})

test.each([
  '127.0.0.1:5',
  'tcp://:5',
  'tcp://host',
  'tcp://host:0',
  'tcp://host:65536',
  'unix://relative',
  'http://x:1',
])('%s is refused as an address of a rendezvous', async (address) => {
  const environment = { SHOAL_RENDEZVOUS: address, SHOAL_SECRET: 'x'.repeat(16), RANK: '0', WORLD_SIZE: '2' }
  const error = await bootstrap({ environment }).catch((caught: unknown) => caught)
  expect(error).toBeInstanceOf(LaunchEnvironmentError)
  expect((error as Error).message).toContain(`SHOAL_RENDEZVOUS: '${address}' is no address of a rendezvous`)
})

test('the rendezvous address of a job over several machines uses the first host and a port of the job', () => {
  const secret = { SHOAL_SECRET: 'x'.repeat(16) }
  const at = (environment: Record<string, string>) => endpointFor(detect(environment)!, environment).place
  // The port of MASTER_PORT itself belongs to torchrun.
  expect(at({ ...torchrun, ...secret })).toMatch(/^tcp:\/\/node0:29501 \(or port (2\d{4}, ){6}2\d{4}\)$/)
  expect(at({ ...torchrun, ...secret, SHOAL_PORT: '4000' })).toBe('tcp://node0:4000')
  for (const port of ['1', '65535'])
    expect(at({ ...torchrun, ...secret, SHOAL_PORT: port })).toBe(`tcp://node0:${port}`)
  expect(at({ ...slurm, ...secret })).toMatch(/^tcp:\/\/gpu03:2\d{4} \(or port /)
  expect(at({ ...slurm, ...secret, MASTER_ADDR: 'fd00::1', MASTER_PORT: '4000' })).toMatch(/^tcp:\/\/\[fd00::1\]:4001 /)
})

test('the ports of a job follow from its job and step, and are equal for all ranks', () => {
  const secret = { SHOAL_SECRET: 'x'.repeat(16) }
  const portsOf = (environment: Record<string, string>) =>
    endpointFor(detect({ ...slurm, ...environment })!, { ...slurm, ...secret, ...environment })
      .targets()
      .map(({ address }) => (address.kind === 'tcp' ? address.port : 0))
  const own = portsOf({})
  expect(own).toHaveLength(8)
  for (const port of own) expect(port >= 20_000 && port < 30_000).toBe(true)
  const otherRank = { SLURM_PROCID: '0', SLURM_NODEID: '0', SLURM_LOCALID: '0', MASTER_ADDR: 'another-name' }
  expect(portsOf(otherRank)).toEqual(own)
  for (const other of [{ SLURM_STEP_ID: '1' }, { SLURM_JOB_ID: '133456' }, { SHOAL_JOB_ID: 'named' }]) {
    expect(portsOf(other)[0]).not.toBe(own[0])
  }
})

describe('incomplete launcher variables', () => {
  test.each<[Record<string, string>, string]>([
    [{ RANK: '0' }, 'RANK is set (0), and WORLD_SIZE is not set'],
    [{ RANK: '3', MASTER_ADDR: 'node0' }, 'WORLD_SIZE is not set'],
    [{ WORLD_SIZE: '2' }, 'WORLD_SIZE is set (2), and RANK is not set'],
    [{ LOCAL_RANK: '0' }, 'LOCAL_RANK is set (0), and RANK is not set'],
    [{ LOCAL_WORLD_SIZE: '2' }, 'and RANK is not set'],
    [{ GROUP_RANK: '1' }, 'and RANK is not set'],
    [{ TORCHELASTIC_RUN_ID: 'none' }, 'and RANK is not set'],
    [{ OMPI_COMM_WORLD_SIZE: '2' }, 'OMPI_COMM_WORLD_SIZE is set (2), and OMPI_COMM_WORLD_RANK is not set'],
    [{ OMPI_COMM_WORLD_LOCAL_SIZE: '2' }, 'and OMPI_COMM_WORLD_RANK is not set'],
    [{ OMPI_COMM_WORLD_LOCAL_RANK: '0' }, 'and OMPI_COMM_WORLD_RANK is not set'],
    [{ PMI_SIZE: '2' }, 'PMI_SIZE is set (2), and PMI_RANK is not set'],
    [{ MPI_LOCALNRANKS: '4' }, 'and PMI_RANK is not set'],
    [{ PMI_LOCAL_SIZE: '4' }, 'and PMI_RANK is not set'],
    [{ MPI_LOCALRANKID: '0' }, 'and PMI_RANK is not set'],
    [{ SLURM_STEP_NUM_TASKS: '2' }, 'SLURM_STEP_NUM_TASKS is set (2), and SLURM_PROCID is not set'],
    [{ SLURM_PROCID: '1', SLURM_NTASKS: '2' }, 'SLURM_PROCID is set (1), and SLURM_STEP_NUM_TASKS is not set'],
    [{ JOB_COMPLETION_INDEX: '0' }, 'RANK=$JOB_COMPLETION_INDEX'],
    [{ LWS_WORKER_INDEX: '1', LWS_GROUP_SIZE: '2' }, 'WORLD_SIZE=$LWS_GROUP_SIZE'],
    [{ LWS_WORKER_INDEX: '0' }, 'RANK and WORLD_SIZE are not set'],
  ])(
    '%j are refused instead of becoming a job of one rank, and the missing variable is named',
    async (environment, words) => {
      const error = await bootstrap({ environment }).catch((caught: unknown) => caught)
      expect(error).toBeInstanceOf(LaunchEnvironmentError)
      expect((error as Error).message).toContain(words)
      expect((error as Error).message).toMatch(/For a job of this process alone, set RANK=0 and WORLD_SIZE=1\.$/)
      const alone = { ...environment, RANK: '0', LOCAL_WORLD_SIZE: '', WORLD_SIZE: '1' }
      expect(await bootstrap({ environment: alone })).toMatchObject({
        worldSize: 1,
      })
    },
  )

  test.each<[string, Record<string, string>]>([
    ['the script of a batch job', { SLURM_JOB_ID: '1', SLURM_PROCID: '0', SLURM_LOCALID: '0', SLURM_NTASKS: '8' }],
    ['a shell of salloc', { SLURM_JOB_ID: '1', SLURM_NTASKS: '8', SLURM_NNODES: '2' }],
    ['a world of one', { WORLD_SIZE: '1', LOCAL_WORLD_SIZE: '1', OMPI_COMM_WORLD_SIZE: '1', PMI_SIZE: '1' }],
    ['a group of one', { LWS_WORKER_INDEX: '0', LWS_GROUP_SIZE: '1' }],
    ['where the first rank is to be', { MASTER_ADDR: 'node0', MASTER_PORT: '29500', SHOAL_SECRET: 'x'.repeat(16) }],
  ])('%s do not count as incomplete', async (_, environment) => {
    expect(await bootstrap({ environment })).toMatchObject({ launcher: 'single', rank: 0, worldSize: 1 })
  })

  test('of one launcher do not hide another launcher', () => {
    expect(detect({ ...openMpi, WORLD_SIZE: '8', JOB_COMPLETION_INDEX: '1' })?.launcher).toBe('openmpi')
    expect(detect({ ...hydra, LOCAL_RANK: '3' })?.launcher).toBe('pmi')
    expect(detect({ ...torchrun, LWS_WORKER_INDEX: '1' })?.launcher).toBe('torchrun')
  })
})

test('Slurm needs MASTER_ADDR if rank 0 is not on the first node, and the error explains it', () => {
  const arbitrary = { ...slurm, SLURM_DISTRIBUTION: 'arbitrary,Pack' }
  expect(() => detect(arbitrary)).toThrow("Slurm's arbitrary distribution (SLURM_DISTRIBUTION) does not say which node")
  expect(detect({ ...arbitrary, MASTER_ADDR: 'gpu04' })?.firstHost).toBe('gpu04')
  expect(detect({ ...arbitrary, SLURM_STEP_NUM_NODES: '1' })?.isOneMachine).toBe(true)
  const first = { ...slurm, SLURM_PROCID: '0', SLURM_DISTRIBUTION: 'cyclic' }
  expect(() => detect({ ...first, SLURMD_NODENAME: 'gpu04' })).toThrow('rank 0 runs on gpu04 (SLURMD_NODENAME)')
  expect(detect({ ...first, SLURMD_NODENAME: 'gpu03' })?.firstHost).toBe('gpu03')
  expect(detect({ ...slurm, SLURMD_NODENAME: 'gpu04' })?.firstHost).toBe('gpu03')
})

test('the rendezvous error suggests causes for ranks that do not meet', () => {
  const secret = { SHOAL_SECRET: 'x'.repeat(16) }
  const hintFor = (environment: Record<string, string>) => endpointFor(detect(environment)!, environment).hint
  const guess = /all ranks are taken to be on this machine; where they are not, .* MASTER_ADDR/
  expect(hintFor({ RANK: '0', WORLD_SIZE: '2', MASTER_ADDR: 'localhost' })).toMatch(guess)
  expect(hintFor({ PMI_RANK: '0', PMI_SIZE: '2' })).toMatch(guess)
  expect(hintFor({ RANK: '0', WORLD_SIZE: '2', MASTER_ADDR: 'node0', MASTER_PORT: '1', ...secret })).toContain(
    "the same MASTER_ADDR (here 'node0': the machine of rank 0",
  )
  const together = { ...torchrun, LOCAL_WORLD_SIZE: '8', LOCAL_RANK: '5' }
  expect(hintFor(together)).toBe('Ranks that different processes have started need the same SHOAL_JOB_ID')
  expect(hintFor({ ...together, SHOAL_JOB_ID: 'x' })).toBeUndefined()
})

test('a job of one rank needs no rendezvous under any launcher', async () => {
  const job = await bootstrap({
    environment: {
      ...slurm,
      SLURM_PROCID: '0',
      SLURM_STEP_NUM_TASKS: '1',
      SLURM_STEP_TASKS_PER_NODE: '1',
      SLURM_NODEID: '0',
      SLURM_LOCALID: '0',
    },
  })
  expect(job).toMatchObject({ launcher: 'slurm', rank: 0, worldSize: 1 })
  const second = await bootstrap({
    environment: {
      SHOAL_RENDEZVOUS: 'unix:///nowhere',
      SHOAL_SECRET: 'x'.repeat(16),
      RANK: '0',
      WORLD_SIZE: '1',
      SHOAL_DEVICE_ORDINAL: '3',
    },
  })
  expect(second).toMatchObject({ launcher: 'shoal', deviceOrdinal: 3 })
})

test('a process without a launcher uses the device from SHOAL_DEVICE_ORDINAL', async () => {
  const environment = { SHOAL_DEVICE_ORDINAL: '3' }
  expect(await bootstrap({ environment })).toMatchObject({ launcher: 'single', localRank: 0, deviceOrdinal: 3 })
  expect(await bootstrap({ environment: {} })).toMatchObject({ launcher: 'single', deviceOrdinal: 0 })
})

test.each([
  ['the number on the machine', {}, 3],
  ['the one device that the launcher shows', { CUDA_VISIBLE_DEVICES: '6' }, 0],
  ['the same by its UUID', { CUDA_VISIBLE_DEVICES: 'GPU-5a1c2d3e-0000-0000-0000-000000000000' }, 0],
  ['one of several', { CUDA_VISIBLE_DEVICES: '4,5,6,7' }, 3],
  ['the ordinal from SHOAL_DEVICE_ORDINAL', { CUDA_VISIBLE_DEVICES: '6', SHOAL_DEVICE_ORDINAL: '2' }, 2],
  ['a software device, which everybody sees', { CUDA_VISIBLE_DEVICES: '6', SHOAL_DEVICE: 'sim' }, 3],
  ['no restriction of devices', { CUDA_VISIBLE_DEVICES: '' }, 3],
])('the device of a rank: %s', (_, variables, expected) => {
  expect(deviceOrdinalIn(variables) ?? 3).toBe(expected)
})

test.runIf(existsSync('/proc/self/stat'))('the starter of the ranks is the nearest ancestor outside the job', () => {
  const parentOf = (pid: number): number =>
    Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  // The 22nd field, after a name in parentheses.
  const startOf = (pid: number): string =>
    readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')[19] as string
  const has = (pid: number, name: string): boolean => {
    try {
      const entries = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
      return entries.some((entry) => entry.startsWith(`${name}=`))
    } catch {
      return false
    }
  }
  expect(launcherProcess('SHOAL_NOBODY_HAS_THIS')).toBe(`${process.ppid} ${startOf(process.ppid)}`)
  // Variables that only the parent has, or the parent and some processes above it.
  const names = readFileSync(`/proc/${process.ppid}/environ`, 'latin1').split('\0')
  for (const name of names.map((entry) => entry.split('=')[0] as string).filter((one) => one !== '')) {
    let pid = process.ppid
    while (pid > 1 && has(pid, name)) pid = parentOf(pid)
    expect(launcherProcess(name), name).toBe(`${pid} ${pid === 0 ? '' : startOf(pid)}`)
  }
})
