import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Crew, type Member, Stage } from '../src/ranks/crew.js'
import { allowedProcessors, numbersIn, sharesOf } from '../src/ranks/processors.js'

describe('the processors of a process', () => {
  test.for([
    { processes: 2, all: '0-31', expected: ['0-15', '16-31'] },
    { processes: 4, all: '0-63', expected: ['0-15', '16-31', '32-47', '48-63'] },
    { processes: 3, all: '0-15', expected: ['0-4', '5-9', '10-14'] },
    { processes: 1, all: '0-63', expected: ['0-15'] },
    { processes: 2, all: '0-6', expected: undefined },
    { processes: 1, all: '', expected: undefined },
    // Of a container that has some of the machine's.
    { processes: 2, all: '4-6,8,32-35', expected: ['4-6,8', '32-35'] },
  ])('$processes on $all', ({ processes, all, expected }) => {
    const allowed = all === '' ? [] : numbersIn(all)
    expect(sharesOf(processes, allowed)).toEqual(expected?.map(numbersIn))
  })

  test('are such as taskset keeps a process to', (context) => {
    const last = allowedProcessors().at(-1)
    if (last === undefined) return context.skip('no taskset here')
    const program = `console.log(/^Cpus_allowed_list:\\s*(\\S+)/m.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1])`
    const words = ['-c', String(last), process.execPath, '--eval', program]
    expect(spawnSync('taskset', words, { encoding: 'utf8' }).stdout.trim()).toBe(String(last))
  })
})

/** Tells an id, then its process number, then how often it has counted. */
const counting: Member = {
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

test('one crew runs at a time, and all end', async () => {
  const crews = await Promise.all(['one', 'other'].map((name) => Crew.start(name, [counting], undefined)))
  const [one, other] = crews as [Crew, Crew]
  const pids = crews.map(({ greeting }) => Number(greeting))
  const stage = new Stage()
  for (const crew of crews) stage.leave(crew)
  const isResting = (): boolean[] => pids.map((pid) => stateOf(pid) === 'T')
  await expect.poll(isResting).toEqual([true, true])
  stage.enter(one)
  await expect.poll(isResting).toEqual([false, true])
  expect(await one.ask('count')).toBeGreaterThanOrEqual(0)
  stage.enter(other)
  await expect.poll(isResting).toEqual([true, false])
  const before = await other.ask('count')
  stage.enter(other)
  await sleep(30)
  expect(await other.ask('count')).toBeGreaterThan(before)
  stage.leave(other)
  await Promise.all(crews.map((crew) => crew.end()))
  for (const pid of pids) expect(() => stateOf(pid)).toThrow('ENOENT')
})
