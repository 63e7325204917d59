import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { expectEnded, folder, linesOf, pidsIn, type Run, ranks, run, sleep, start } from './support/run.js'

describe('shoal run after the first failure', () => {
  test('ends all other ranks, with the reason and the exit status', async () => {
    const one = start(['-n', '4', ranks, 'fail', '2', '7'])
    const { code, errors } = await one.end
    expect(code).toBe(7)
    expect(errors).toMatch(/^shoal run: rank 2 \(pid \d+\) ended with exit status 7; the others are being ended$/m)
    const pids = pidsIn(one.output())
    expect(pids).toHaveLength(4)
    await expectEnded(pids)
  })

  test('reports a rank that ended by a signal', async () => {
    const { code, errors } = await run(['-n', '3', ranks, 'kill', '1'])
    expect(code).toBe(128 + 9)
    expect(errors).toMatch(/rank 1 \(pid \d+\) was killed by SIGKILL; the others are being ended/)
  })

  test('kills ranks that ignore SIGTERM, after the grace period', async () => {
    const began = performance.now()
    const one = start(['-n', '3', '--grace', '4', ranks, 'ignoresSigterm'])
    const { code, output, errors } = await one.end
    expect(code).toBe(5)
    expect(output.match(/ignored SIGTERM/g)).toHaveLength(2)
    expect(errors).toContain('ranks 1, 2 did not end within 4 s, killed')
    expect(performance.now() - began).toBeGreaterThan(4200)
    await expectEnded(pidsIn(output))
  })

  test('ends stopped ranks too, without waiting for the grace period', async () => {
    const script = 'trap "echo rank $RANK ends; exit" TERM; [ $RANK = 1 ] && kill -STOP $$; sleep 0.5; exit 5'
    const { code, output, errors } = await run(['-n', '2', '--exec', 'sh', '-c', script])
    expect(code).toBe(5)
    expect(output).toBe('[1] rank 1 ends\n')
    expect(errors).not.toContain('did not end within')
  })

  test('reports only one of several simultaneous failures', async () => {
    const { code, errors } = await run(['-n', '4', '--exec', 'sh', '-c', 'exit 3'])
    expect(code).toBe(3)
    expect(errors.match(/shoal run: rank \d \(pid \d+\) ended with exit status 3/g)).toHaveLength(1)
  })
})

describe('shoal run --on-failure continue', () => {
  const options = ['--on-failure', 'continue']

  test.each([['1'], ['0'], ['0', '2']])('lets survivors continue: %s killed', async (...killedRanks) => {
    const { code, output, errors } = await run(['-n', '4', ...options, ranks, 'elastic', ...killedRanks])
    expect(code).toBe(0)
    const left = ['0', '1', '2', '3'].filter((rank) => !killedRanks.includes(rank))
    const lines = linesOf(output).sort()
    expect(lines).toHaveLength(left.length)
    for (const [index, rank] of left.entries()) {
      expect(lines[index]).toMatch(new RegExp(`^\\[${rank}\\] SHOAL_RANKS_LOST [\\d,]+ now ${index}/${left.length} 9$`))
    }
    for (const killedRank of killedRanks) expect(errors).toContain(`rank ${killedRank} (pid `)
    expect(errors).toContain('was killed by SIGKILL; the others go on')
  })

  test('fails if all ranks fail', async () => {
    const { code, errors } = await run([
      '-n',
      '2',
      ...options,
      '--exec',
      'sh',
      '-c',
      'sleep 0.$RANK; exit $((RANK + 4))',
    ])
    expect(code).toBe(4)
    expect(errors).toContain('ended with exit status 4; the others go on')
    expect(errors).toContain('ended with exit status 5; it was the last')
  })
})

describe('signals to shoal run', () => {
  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
  ] as const)('%s is forwarded, and ends the job', async (signal, status) => {
    const one = start(['-n', '2', ranks, 'signals'])
    await one.until('ready', 2)
    one.child.kill(signal)
    const { code, output, errors } = await one.end
    expect(code).toBe(status)
    expect(output).toContain(`[0] got ${signal}`)
    expect(output).toContain(`[1] got ${signal}`)
    expect(errors).toContain(`got ${signal}; the ranks are being ended`)
    await expectEnded(pidsIn(output))
  })

  test('SIGUSR2 and SIGWINCH are forwarded without ending the job', async () => {
    const one = start(['-n', '2', ranks, 'signals'])
    await one.until('ready', 2)
    one.child.kill('SIGUSR2')
    await one.until('got SIGUSR2', 2)
    one.child.kill('SIGWINCH')
    await one.until('got SIGWINCH', 2)
    one.child.kill('SIGTERM')
    expect((await one.end).code).toBe(143)
  })

  test('a second signal skips the grace period', async () => {
    const one = start(['-n', '2', '--grace', '3600', ranks, 'signals', 'stay'])
    await one.until('ready', 2)
    one.child.kill('SIGINT')
    await one.until('got SIGINT', 2)
    one.child.kill('SIGINT')
    const { code, output } = await one.end
    expect(code).toBe(130)
    await expectEnded(pidsIn(output))
  })
})

/** Returns the helper process of `shoal run`, which kills the ranks if `shoal run` is killed. */
function guardOf({ child: { pid }, output }: Run): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
  const guards = children.filter((child) => !pidsIn(output()).includes(child))
  expect(guards).toHaveLength(1)
  return guards[0] as number
}

describe('shoal run leaves no process behind', () => {
  test.each([
    ['ranks that wait forever', 'signals'],
    ['ranks that ignore signals', 'busy'],
    ['processes started by ranks', 'parent'],
  ])('after it was killed: %s', async (_, action) => {
    const one = start(['-n', '2', ranks, action])
    await one.until('ready', 2)
    const pids = pidsIn(one.output())
    expect(pids).toHaveLength(action === 'parent' ? 4 : 2)
    one.child.kill('SIGKILL')
    expect((await one.end).signal).toBe('SIGKILL')
    await expectEnded(pids)
  })

  test.each([2, 6, 12, 24])('after it was killed with %d ranks started', async (count) => {
    const seconds = `600.${process.pid}${count}`
    const one = start(['-n', '64', '--exec', 'sleep', seconds])
    const file = `/proc/${one.child.pid}/task/${one.child.pid}/children`
    // One of them is the guard. Do not wait in between, because the test must find it at work.
    const end = performance.now() + 300_000
    while (readFileSync(file, 'utf8').trim().split(' ').length < count + 1 && performance.now() < end);
    one.child.kill('SIGKILL')
    expect((await one.end).signal).toBe('SIGKILL')
    const left = (): string[] =>
      execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
        .split('\n')
        .filter((words) => words.endsWith(`sleep ${seconds}`))
    // The last process may not have started its program yet.
    await sleep(100)
    await expect.poll(left, { timeout: 300_000 }).toEqual([])
  })

  test('after its guard was killed', async () => {
    const go = `${folder}/go`
    const script = 'echo pid $$ ready; while [ ! -e $GO ]; do sleep 0.1; done'
    const one = start(['-n', '2', '--exec', 'sh', '-c', script], { GO: go })
    await one.until('ready', 2)
    process.kill(guardOf(one), 'SIGKILL')
    writeFileSync(go, '')
    expect(await one.end).toMatchObject({ code: 0, signal: null, errors: '' })
  })

  test('after it failed without its guard', async () => {
    const fault = `${folder}/fault.mjs`
    writeFileSync(fault, `if (!('RANK' in process.env)) process.once('SIGURG', () => { throw new Error('a fault') })`)
    const one = start(['-n', '2', ranks, 'signals'], { NODE_OPTIONS: `--import=${fault}` })
    await one.until('ready', 2)
    process.kill(guardOf(one), 'SIGKILL')
    one.child.kill('SIGURG')
    const { code, errors } = await one.end
    expect(code).toBe(1)
    expect(errors).toContain('a fault')
    await expectEnded(pidsIn(one.output()))
  })

  test('if the programs are not Node', async () => {
    const one = start([
      '-n',
      '2',
      '--exec',
      'sh',
      '-c',
      'trap "" TERM; echo pid $$ ready; sleep 600 & echo pid $!; wait',
    ])
    await one.until('ready', 2)
    await one.until(/pid \d+/, 4)
    const pids = pidsIn(one.output())
    one.child.kill('SIGKILL')
    await expectEnded(pids)
  })

  test('if ranks have started processes, and does not wait for these', async () => {
    const { code, output } = await run(['-n', '2', ranks, 'parent', 'leave'])
    expect(code).toBe(0)
    const pids = pidsIn(output)
    expect(pids).toHaveLength(2)
    await expectEnded(pids)
  })
})
