import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { PrivateFolder } from '../src/rendezvous/privateFolder.js'
import { children, type End, folder, freePort, holdPort, script, start, startRanks } from './support/processes.js'

/** Waits 1.5 s for the other ranks. */
const impatient = [script, 'end', '1500']
/** Checks that this user's rendezvous folder is empty again, and that the serving process has ended. */
async function expectNothingLeft(): Promise<void> {
  const base = join(folder, `shoal-${userInfo().uid}`)
  await expect.poll(() => (existsSync(base) ? readdirSync(base) : []), { timeout: 300_000 }).toEqual([])
  // The process's command line does not name its job, but its socket does.
  const sockets = (): string[] =>
    existsSync('/proc/net/unix')
      ? readFileSync('/proc/net/unix', 'utf8')
          .split('\n')
          .filter((line) => line.includes(folder))
      : []
  await expect.poll(sockets, { timeout: 300_000 }).toEqual([])
}

function versionOf(program: string): string {
  try {
    return execFileSync(program, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch {
    return ''
  }
}

const openMpi = ['mpirun', 'mpirun.openmpi'].find((program) => versionOf(program).includes('Open MPI'))
const hydra = ['mpiexec.hydra', 'mpiexec.mpich', 'mpiexec'].find((program) => versionOf(program).includes('HYDRA'))

let sessions = 0

/**
 * Open MPI refuses the superuser, and more ranks than cores, without these options. Each mpirun also gets a separate
 * session folder: two that start at once in the same folder sometimes fail, because the first to end removes the folder
 * that the other is about to use ("A call to mkdir was unable to create the desired directory"). TMPDIR, which Shoal
 * shares, does not change.
 */
function openMpiOptions(): string[] {
  sessions += 1
  const own = join(folder, `session-${sessions}`)
  mkdirSync(own)
  return ['--allow-run-as-root', '--oversubscribe', '--mca', 'orte_tmpdir_base', own]
}

describe.each([
  ['openmpi', openMpi, openMpiOptions, 'no mpirun of Open MPI here (Debian: apt-get install openmpi-bin)'],
  ['pmi', hydra, (): string[] => [], 'no mpiexec of MPICH here (Debian: apt-get install mpich)'],
] as const)('the real launcher %s', (launcher, program, optionsOf, why) => {
  test('starts ranks that join one job', async (context) => {
    if (program === undefined) return context.skip(why)
    const { code, lines, errors } = await start(program, [...optionsOf(), '-n', '4', process.execPath, script])
    expect(errors).toBe('')
    expect(code).toBe(0)
    const places = lines.filter((line) => 'launcher' in line).sort((a, b) => Number(a['rank']) - Number(b['rank']))
    expect(places).toEqual(
      [0, 1, 2, 3].map((rank) => ({ launcher, rank, worldSize: 4, localRank: rank, localWorldSize: 4, nodeRank: 0 })),
    )
    const results = lines.filter((line) => 'shared' in line)
    expect(results).toHaveLength(4)
    for (const result of results) expect(result).toMatchObject({ shared: [4, 2], gathered: [0, 1, 2, 3] })
    await expectNothingLeft()
  })

  test('starts ranks through a shell', async (context) => {
    if (program === undefined) return context.skip(why)
    const command = `'${process.execPath}' '${script}'; exit $?`
    const { code, lines } = await start(program, [...optionsOf(), '-n', '2', 'sh', '-c', command])
    expect(code).toBe(0)
    expect(lines.filter((line) => 'shared' in line)).toHaveLength(2)
  })

  test('keeps two simultaneous jobs separate', async (context) => {
    if (program === undefined) return context.skip(why)
    const startTwo = (): Promise<End> => start(program, [...optionsOf(), '-n', '2', process.execPath, script])
    for (const { code, lines, errors } of await Promise.all([startTwo(), startTwo()])) {
      expect(errors).toBe('')
      expect(code).toBe(0)
      expect(lines.filter((line) => 'shared' in line)).toHaveLength(2)
    }
    await expectNothingLeft()
  })
})

test('with Open MPI --enable-recovery the other ranks continue after rank 0 is killed', async (context) => {
  if (openMpi === undefined) return context.skip('no mpirun of Open MPI here (Debian: apt-get install openmpi-bin)')
  const options = [...openMpiOptions(), '--enable-recovery', '-n', '3']
  const { lines } = await start(openMpi, [...options, process.execPath, script, 'kill-0'])
  const losses = lines.filter((line) => 'error' in line)
  expect(losses).toHaveLength(2)
  for (const line of losses) expect(line).toMatchObject({ error: 'SHOAL_RANKS_LOST', lost: [0], fired: true })
  expect(lines.filter((line) => 'newRank' in line)).toHaveLength(2)
  await expectNothingLeft()
})

const slurm = (rank: number, worldSize: number): Record<string, string> => ({
  SLURM_JOB_ID: '77',
  SLURM_STEP_ID: '0',
  SLURM_PROCID: String(rank),
  SLURM_LOCALID: String(rank),
  SLURM_NODEID: '0',
  SLURM_STEP_NUM_TASKS: String(worldSize),
  SLURM_STEP_NUM_NODES: '1',
  SLURM_STEP_TASKS_PER_NODE: String(worldSize),
  SLURM_STEP_NODELIST: 'gpu1',
})

const torchrun = (rank: number, worldSize: number): Record<string, string> => ({
  RANK: String(rank),
  WORLD_SIZE: String(worldSize),
  LOCAL_RANK: String(rank),
  LOCAL_WORLD_SIZE: String(worldSize),
  GROUP_RANK: '0',
  MASTER_ADDR: '127.0.0.1',
  MASTER_PORT: '29500',
  TORCHELASTIC_RUN_ID: 'none',
})

describe.each([
  ['slurm', slurm],
  ['torchrun', torchrun],
] as const)('with the variables of %s', (launcher, variables) => {
  test('the ranks join one job', async () => {
    const ends = await startRanks(3, (rank) => variables(rank, 3))
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(ends.map(({ lines }) => lines[0])).toEqual(
      [0, 1, 2].map((rank) => ({ launcher, rank, worldSize: 3, localRank: rank, localWorldSize: 3, nodeRank: 0 })),
    )
    for (const { lines } of ends) expect(lines[1]).toMatchObject({ shared: [4, 2], gathered: [0, 1, 2] })
    await expectNothingLeft()
  })
})

test.each([
  ['rank 0, which had started the rendezvous', '0', [1, 2, 3]],
  ['the last rank', '3', [0, 1, 2]],
  ['two ranks at once', '0,2', [1, 3]],
])('after SIGKILL of %s the other ranks notice and continue', async (_, killed, left) => {
  const ends = await startRanks(4, (rank) => slurm(rank, 4), `kill-${killed}`)
  for (const [rank, { code, signal, lines }] of ends.entries()) {
    if (!left.includes(rank)) {
      expect(signal).toBe('SIGKILL')
      continue
    }
    expect(code).toBe(0)
    expect(lines.find((line) => 'error' in line)).toMatchObject({ error: 'SHOAL_RANKS_LOST', fired: true })
    expect(lines.at(-1)).toEqual({ rank, newRank: left.indexOf(rank), newSize: left.length, shared: [7] })
  }
  await expectNothingLeft()
})

test('the other ranks name a rank that never starts', async () => {
  let ends: End[] = []
  // On a busy machine one rank may time out before the other has joined, and then names that rank too.
  for (let limit = 1500; limit < 200_000; limit *= 4) {
    const program = [script, 'end', String(limit)]
    ends = await Promise.all([0, 2].map((rank) => start(process.execPath, program, slurm(rank, 3))))
    if (ends.every(({ lines }) => String(lines[0]?.['missing']) === '1')) break
    await expectNothingLeft()
  }
  for (const { code, lines } of ends) {
    expect(code).toBe(3)
    expect(lines[0]).toMatchObject({ failed: 'SHOAL_RENDEZVOUS_TIMEOUT', missing: [1] })
    expect(String(lines[0]?.['message'])).toContain('rank 1 did not come')
  }
  await expectNothingLeft()
})

test('if rank 0 never starts, the other ranks report that the rendezvous has no server', async () => {
  const { code, lines } = await start(process.execPath, impatient, slurm(1, 2))
  expect(code).toBe(3)
  expect(lines[0]).toMatchObject({ failed: 'SHOAL_RENDEZVOUS_TIMEOUT' })
  expect(String(lines[0]?.['message'])).toMatch(/The rendezvous at unix:\/\/.* was not reached: nothing was there/)
})

describe('a rendezvous over a port, as between machines', () => {
  /** Two processes whose variables name two machines. */
  const apart = (rank: number, port: number, secret: string): Record<string, string> => ({
    PMI_RANK: String(rank),
    PMI_SIZE: '2',
    MPI_LOCALRANKID: '0',
    MPI_LOCALNRANKS: '1',
    MASTER_ADDR: '127.0.0.1',
    SHOAL_PORT: String(port),
    SHOAL_LISTEN: '127.0.0.1',
    SHOAL_SECRET: secret,
  })

  test('joins the ranks', async () => {
    const port = await freePort()
    const ends = await startRanks(2, (rank) => apart(rank, port, 'the secret of this job'))
    for (const { code, lines } of ends) {
      expect(code).toBe(0)
      expect(lines[1]).toMatchObject({ shared: [4, 2], gathered: [0, 1] })
    }
  })

  test('refuses another secret, and reports a port in use', async () => {
    const attempt = async (limit: number) => {
      const port = await freePort()
      const program = [script, 'end', String(limit)]
      return await Promise.all([
        start(process.execPath, program, apart(0, port, 'the secret of this job')),
        start(process.execPath, program, apart(1, port, 'the secret of that job')),
      ])
    }
    let limit = 1500
    let [first, second] = await attempt(limit)
    // On a busy machine one rank may time out before the other has started.
    while (second.lines[0]?.['failed'] === 'SHOAL_RENDEZVOUS_TIMEOUT' && limit < 100_000) {
      limit *= 4
      ;[first, second] = await attempt(limit)
    }
    expect(first.lines[0]).toMatchObject({ failed: 'SHOAL_RENDEZVOUS_TIMEOUT', missing: [1] })
    expect(String(first.lines[0]?.['message'])).toContain(`did not end within ${limit} ms`)
    expect(second.lines[0]).toMatchObject({ failed: 'SHOAL_RENDEZVOUS' })
    expect(String(second.lines[0]?.['message'])).toContain('another secret than the job')
    const { server: holder, port: held } = await holdPort()
    const refused = await start(process.execPath, [script, 'end'], apart(0, held, 'the secret of this job'))
    holder.close()
    expect(String(refused.lines[0]?.['message'])).toMatch(/cannot serve a rendezvous at tcp:.*EADDRINUSE/)
  })
})

describe('the private folder of a job', () => {
  const base = (): string => join(folder, `shoal-${userInfo().uid}`)

  test('is refused if other users can enter it', async () => {
    mkdirSync(base())
    chmodSync(base(), 0o755)
    const ends = await startRanks(2, (rank) => slurm(rank, 2), 'end')
    for (const { code, lines } of ends) {
      expect(code).toBe(3)
      expect(String(lines[0]?.['message'])).toContain('can be entered by others')
    }
  })

  test('is refused if it is a symbolic link', async () => {
    writeFileSync(base(), '')
    const [end] = await startRanks(1, () => slurm(0, 2), 'end')
    expect(String(end!.lines[0]?.['message'])).toMatch(/is no folder|EEXIST/)
  })

  test.each(['0', '1'])('that cannot be inspected raises a rendezvous error: rank %s', async (rank) => {
    const loop = join(folder, 'loop')
    symlinkSync(loop, loop)
    const environment = { ...slurm(Number(rank), 2), TMPDIR: loop, XDG_RUNTIME_DIR: loop }
    const { code, lines } = await start(process.execPath, [script, 'end'], environment)
    expect(code).toBe(3)
    expect(lines[0]).toMatchObject({ failed: 'SHOAL_RENDEZVOUS' })
    expect(String(lines[0]?.['message'])).toMatch(
      /^cannot (make a folder for|read the secret of) the rendezvous: ELOOP/,
    )
  })

  test('is accessible to this user only, and files of an earlier job are replaced', async () => {
    process.env['TMPDIR'] = folder
    const runtime = process.env['XDG_RUNTIME_DIR']
    delete process.env['XDG_RUNTIME_DIR']
    try {
      // The folder of a job that was killed together with its rendezvous.
      const left = new PrivateFolder('slurm 2 77 0 0 ')
      left.create('an old secret')
      writeFileSync(left.socket, '')
      expect(readdirSync(base())).toHaveLength(1)
    } finally {
      delete process.env['TMPDIR']
      if (runtime !== undefined) process.env['XDG_RUNTIME_DIR'] = runtime
    }
    const ends = await startRanks(2, (rank) => slurm(rank, 2))
    expect(ends.map(({ code }) => code)).toEqual([0, 0])
    await expectNothingLeft()
  })
})

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s of the rendezvous server leaves no folder', async (signal) => {
  const own = join(folder, 'rendezvous')
  mkdirSync(own)
  writeFileSync(join(own, 'secret'), 'the secret of this job')
  const code = "import('@shoal/launch/server').then((server) => server.serveAsHelper())"
  const helper = spawn(process.execPath, ['--input-type=module', '-e', code], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(helper)
  const address = { kind: 'unix', path: join(own, 'socket') }
  const job = { instance: '', job: 'a job', place: '', launch: '', localWorldSize: 0, pid: 1 }
  helper.stdin.write(
    `${JSON.stringify({ worldSize: 2, secret: 'the secret of this job', address, job, folder: own })}\n`,
  )
  const [answer] = await once(helper.stdout, 'data')
  expect(String(answer)).toBe('ready\n')
  expect(readdirSync(own).sort()).toEqual(['secret', 'socket'])
  helper.kill(signal)
  await once(helper, 'exit')
  expect(existsSync(own)).toBe(false)
})

test('a rank that runs to its end has left; a rank killed during the job is lost', async () => {
  // Rank 1 waits in vain and receives the reason.
  const [quiet] = await Promise.all([
    start(process.execPath, [script, 'kill-none'], slurm(1, 2)),
    start(process.execPath, [script, 'end'], slurm(0, 2)),
  ])
  expect(quiet.code).not.toBe(0)
  expect(quiet.errors).toContain('rank 0 left the job')
  const [survivor] = await Promise.all([
    start(process.execPath, [script, 'kill-none'], slurm(1, 2)),
    start(process.execPath, [script, 'exit'], slurm(0, 2)),
  ])
  expect(survivor.errors).toContain('rank 0 was lost')
})
