import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type ProcessCommand, ProcessGroup } from '../src/processes/processGroup.js'
import { allowedProcessors, numbersIn, sharesOf } from '../src/processes/processors.js'
import { Scheduler } from '../src/processes/scheduler.js'

describe('the processors of a process', () => {
  test.for([
    { processes: 2, all: '0-31', expected: ['0-15', '16-31'] },
    { processes: 4, all: '0-63', expected: ['0-15', '16-31', '32-47', '48-63'] },
    { processes: 3, all: '0-15', expected: ['0-4', '5-9', '10-14'] },
    { processes: 1, all: '0-63', expected: ['0-15'] },
    { processes: 2, all: '0-6', expected: undefined },
    { processes: 1, all: '', expected: undefined },
    // A container with some of the machine's processors.
    { processes: 2, all: '4-6,8,32-35', expected: ['4-6,8', '32-35'] },
  ])('$processes on $all', ({ processes, all, expected }) => {
    const allowed = all === '' ? [] : numbersIn(all)
    expect(sharesOf(processes, allowed)).toEqual(expected?.map(numbersIn))
  })

  test('are processors to which taskset can bind the process', (context) => {
    const last = allowedProcessors().at(-1)
    if (last === undefined) return context.skip('no taskset here')
    const program = `console.log(/^Cpus_allowed_list:\\s*(\\S+)/m.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1])`
    const words = ['-c', String(last), process.execPath, '--eval', program]
    expect(spawnSync('taskset', words, { encoding: 'utf8' }).stdout.trim()).toBe(String(last))
  })
})

/** Prints an id, then its process id, then its counter. */
const counting: ProcessCommand = {
  command: process.execPath,
  arguments: [
    '--eval',
    `let count = 0
    setInterval(() => { count += 1 }, 1)
    const answers = ['id 00', String(process.pid)]
    console.log(answers.shift())
    require('node:readline').createInterface({ input: process.stdin }).on('line', () => console.log(answers.shift() ?? count)).on('close', () => process.exit())`,
  ],
}

function stateOf(pid: number): string {
  return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1] ?? ''
}

test('process groups run one at a time, and all end', async () => {
  const groups = await Promise.all(['one', 'other'].map((name) => ProcessGroup.start(name, [counting], undefined)))
  const [one, other] = groups as [ProcessGroup, ProcessGroup]
  const pids = groups.map(({ readyLine }) => Number(readyLine))
  const scheduler = new Scheduler()
  for (const group of groups) scheduler.suspend(group)
  const areStopped = (): boolean[] => pids.map((pid) => stateOf(pid) === 'T')
  await expect.poll(areStopped).toEqual([true, true])
  scheduler.run(one)
  await expect.poll(areStopped).toEqual([false, true])
  expect(await one.measure('count')).toBeGreaterThanOrEqual(0)
  scheduler.run(other)
  await expect.poll(areStopped).toEqual([true, false])
  const before = await other.measure('count')
  scheduler.run(other)
  await sleep(30)
  expect(await other.measure('count')).toBeGreaterThan(before)
  scheduler.suspendAll()
  await expect.poll(areStopped).toEqual([true, true])
  await Promise.all(groups.map((group) => group.end()))
  for (const pid of pids) expect(() => stateOf(pid)).toThrow('ENOENT')
})
