import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type End, folder, freePort, holdPort, script, start } from './support/processes.js'

const secret = { SHOAL_SECRET: 'the same for all jobs of this user', SHOAL_LISTEN: '127.0.0.1' }
type Variables = Record<string, string>

/** Starts a rank that shares and gathers, and waits two minutes for the other ranks. */
function startRank(TAG: string, variables: Variables, limit = 120_000): Promise<End> {
  return start(process.execPath, [script, 'share', String(limit)], { ...secret, ...variables, TAG })
}

/** Variables of a rank that is alone on its machine, according to these variables. */
const slurm = (step: number, rank: number): Variables => ({
  SLURM_JOB_ID: '77',
  SLURM_STEP_ID: String(step),
  SLURM_PROCID: String(rank),
  SLURM_LOCALID: '0',
  SLURM_NODEID: String(rank),
  SLURM_STEP_NUM_TASKS: '2',
  SLURM_STEP_NUM_NODES: '2',
  SLURM_STEP_TASKS_PER_NODE: '1(x2)',
  SLURM_STEP_NODELIST: '127.0.0.1',
})

const plain = (rank: number): Variables => ({ RANK: String(rank), WORLD_SIZE: '2', MASTER_ADDR: '127.0.0.1' })

function expectAlone(ends: readonly End[], tag: string): void {
  for (const { lines, errors } of ends) expect([lines[1]?.['jobs'], errors]).toEqual([[tag, tag], ''])
}

function messageOf({ lines }: End): string {
  return String(lines[0]?.['message'])
}

/** Resolves when the rendezvous of a job serves. */
async function listening(port: number): Promise<void> {
  await expect.poll(() => reach(port), { timeout: 120_000 }).toBe(true)
}

function reach(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

const sleep = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

test('two steps of a Slurm job use different ports', async () => {
  // Rank 0 of one job and rank 1 of the other start first.
  const early = [startRank('A', slurm(0, 0)), startRank('B', slurm(1, 1))]
  await sleep(500)
  const late = [startRank('A', slurm(0, 1)), startRank('B', slurm(1, 0))]
  const [a0, b1, a1, b0] = (await Promise.all([...early, ...late])) as [End, End, End, End]
  expectAlone([a0, a1], 'A')
  expectAlone([b0, b1], 'B')
})

test.each<[string, (job: number, rank: number) => Variables, string]>([
  ['two steps of a Slurm job', slurm, 'SLURM_JOB_ID=77, SLURM_STEP_ID=0'],
  [
    'two runs of torchrun',
    (job, rank) => ({
      ...plain(rank),
      LOCAL_WORLD_SIZE: '1',
      GROUP_RANK: String(rank),
      TORCHELASTIC_RUN_ID: `run${job}`,
    }),
    'TORCHELASTIC_RUN_ID=run0',
  ],
  [
    'two jobs that the user has named',
    (job, rank) => ({ ...plain(rank), LOCAL_WORLD_SIZE: '1', SHOAL_JOB_ID: `job${job}` }),
    'SHOAL_JOB_ID=job0',
  ],
])('%s with the same port: the second job gets an error that names the first', async (_, variables, name) => {
  const SHOAL_PORT = String(await freePort())
  const first = startRank('A', { ...variables(0, 0), SHOAL_PORT })
  await listening(Number(SHOAL_PORT))
  const strangers = await Promise.all([1, 0].map((rank) => startRank('B', { ...variables(1, rank), SHOAL_PORT })))
  for (const end of strangers) {
    expect(end.lines[0]).toMatchObject({ failed: 'SHOAL_RENDEZVOUS' })
    expect(messageOf(end)).toContain('another job lives there')
    expect(messageOf(end)).toContain(name)
  }
  expectAlone(await Promise.all([first, startRank('A', { ...variables(0, 1), SHOAL_PORT })]), 'A')
})

test('two indistinguishable jobs: a rank that joins the wrong job gets an error', async () => {
  const SHOAL_PORT = String(await freePort())
  const variables = (rank: number) => ({ ...plain(rank), LOCAL_WORLD_SIZE: '1', SHOAL_PORT })
  const early = [startRank('A', variables(0), 20_000), startRank('B', variables(1), 20_000)]
  await listening(Number(SHOAL_PORT))
  const late = [startRank('A', variables(1), 20_000), startRank('B', variables(0), 20_000)]
  const ends = await Promise.all([...early, ...late])
  for (const { lines } of ends) expect(String(lines[0]?.['failed'])).toMatch(/^SHOAL_RENDEZVOUS/)
  const messages = ends.map(messageOf).join('\n')
  expect(messages).toContain('give each a SHOAL_JOB_ID of its own')
  expect(messages).toContain('LOCAL_WORLD_SIZE says that its machine has 1 of the ranks')
})

test('two simultaneous jobs of the same name on one machine both get an error', async () => {
  const first = startRank('A', plain(0))
  await expect.poll(() => existsSync(join(folder, `shoal-${userInfo().uid}`)), { timeout: 120_000 }).toBe(true)
  await sleep(1000)
  const second = await startRank('B', plain(0))
  const ends = [await first, second]
  for (const { lines } of ends) expect(lines[0]).toMatchObject({ failed: 'SHOAL_RENDEZVOUS' })
  for (const end of ends)
    expect(messageOf(end)).toMatch(/SHOAL_JOB_ID of its own|two jobs of the same name start at once/)
})

test('if the port derived from MASTER_PORT is used by another process, the job takes its next port', async () => {
  const { server, port } = await holdPort()
  const variables = (rank: number) => ({
    ...plain(rank),
    LOCAL_WORLD_SIZE: '1',
    GROUP_RANK: String(rank),
    MASTER_PORT: String(port - 1),
  })
  try {
    expectAlone(await Promise.all([1, 0].map((rank) => startRank('A', variables(rank)))), 'A')
  } finally {
    server.close()
  }
})
