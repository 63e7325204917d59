import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, type TestContext, test } from 'vitest'
import {
  chooseIdleProcessors,
  describeProcessors,
  findPlacements,
  findShares,
  mainThreadProcessors,
  measureLoopTimes,
  placementsIn,
} from '../src/processes/placements.js'
import { type ProcessCommand, ProcessGroup } from '../src/processes/processGroup.js'
import { allowedProcessors, numbersIn, sharesOf } from '../src/processes/processors.js'
import { SubjectProcess } from '../src/subjectProcess.js'

afterAll(() => SubjectProcess.closeAll())

/** The loop takes 11 µs on idle processors and 17 µs on all others. */
function timesWith(idle: readonly number[]): Map<number, number> {
  return new Map(numbersIn('0-63').map((processor) => [processor, idle.includes(processor) ? 11 : 17]))
}

describe('placements', () => {
  test.for([
    // Of equal processors, the first is chosen.
    {
      processes: 2,
      all: '0-31',
      idle: [3, 19, 20],
      candidates: ['3,0-2', '19-20,16-17'],
      others: ['4-15', '18,21-31'],
    },
    { processes: 1, all: '0-31', idle: [12, 15, 16], candidates: ['12,15,0-1'], others: ['2-11,13-14'] },
    { processes: 1, all: '4-7', idle: [7], candidates: ['7'], others: ['4-6'] },
    { processes: 2, all: '2-9', idle: [], candidates: ['2', '6'], others: ['3-5', '7-9'] },
  ])('of $processes on $all, idle $idle', ({ processes, all, idle, candidates, others }) => {
    const placements = placementsIn(sharesOf(processes, numbersIn(all)) ?? [], timesWith(idle))
    const wanted = candidates.map((list, index) => {
      const [mainThread] = numbersIn(list)
      return { candidates: numbersIn(list), mainThread, others: numbersIn(others[index] ?? '') }
    })
    expect(placements).toEqual(wanted)
    expect(mainThreadProcessors(placements)).toEqual(candidates.flatMap(numbersIn))
  })

  test('bind main threads to processors that are idle', () => {
    const placements = placementsIn(sharesOf(2, numbersIn('0-31')) ?? [], timesWith([1, 3, 17]))
    expect(placements.map(({ mainThread }) => mainThread)).toEqual([1, 17])
    const asked: number[][] = []
    chooseIdleProcessors(placements, (processors) => {
      asked.push([...processors])
      return timesWith([3, 19])
    })
    // Only candidates are measured.
    expect(asked).toEqual([[1, 3, 0, 2, 17, 16, 18, 19]])
    expect(placements.map(({ mainThread }) => mainThread)).toEqual([3, 19])
  })

  test('are not measured again with at most one candidate each', () => {
    const never = (): never => {
      throw new Error('measured')
    }
    const placements = placementsIn(sharesOf(2, numbersIn('2-9')) ?? [], timesWith([]))
    chooseIdleProcessors(placements, never)
    expect(placements.map(({ mainThread }) => mainThread)).toEqual([2, 6])
    chooseIdleProcessors(undefined, never)
    chooseIdleProcessors([{ candidates: [], others: [1] }], never)
  })

  test('do not exist with too few processors', () => {
    const processes = allowedProcessors().length + 1
    expect(findPlacements(processes)).toBeUndefined()
    expect(findShares(processes)).toBeUndefined()
    expect(mainThreadProcessors(undefined)).toEqual([])
  })

  test('are described in one line', () => {
    expect(describeProcessors([['one process', []]])).toContain('No thread is bound to a processor')
    const line = describeProcessors([
      ['one process', [3]],
      ['one a rank', [3, 19]],
    ])
    expect(line).toMatch(/most idle of these processors: 3 \(one process\); 3, 19 \(one a rank\)$/)
  })
})

test('idle.c times each given processor', (context) => {
  try {
    execFileSync(process.env['CC'] || 'gcc', ['--version'], { stdio: 'ignore' })
  } catch {
    context.skip('no gcc on this machine')
  }
  const allowed = allowedProcessors()
  if (allowed.length === 0) return context.skip('no taskset here')
  const times = measureLoopTimes(allowed)
  expect([...times.keys()]).toEqual(allowed)
  // Long enough to show that the compiler removed nothing of the loop, even on a fast machine.
  for (const time of times.values()) expect(time).toBeGreaterThan(200)
  expect(() => measureLoopTimes([1023])).toThrow('processor 1023')
})

/** Prints an id, then its process id, then for each line the number of the thread that it has started. */
const threading: ProcessCommand = {
  command: process.execPath,
  arguments: [
    '--eval',
    `const { Worker } = require('node:worker_threads')
    const { readdirSync } = require('node:fs')
    const answers = ['id 00', String(process.pid)]
    console.log(answers.shift())
    require('node:readline').createInterface({ input: process.stdin }).on('line', () => {
      if (answers.length > 0) return console.log(answers.shift())
      const before = new Set(readdirSync('/proc/self/task'))
      const worker = new Worker('setInterval(() => {}, 1000)', { eval: true })
      worker.once('online', () => console.log(readdirSync('/proc/self/task').find((thread) => !before.has(thread))))
    }).on('close', () => process.exit())`,
  ],
}

function twoProcessors(context: TestContext): [number, number] {
  const [one, other] = allowedProcessors()
  if (one === undefined) context.skip('no taskset here')
  if (other === undefined) context.skip('one processor')
  return [one, other] as [number, number]
}

function processorsOf(pid: number, thread: string): string {
  const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8')
  return /^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? ''
}

describe('a process group with placements', () => {
  test('keeps its main thread alone on its processor, also when threads start later', async (context) => {
    const [mainThread, other] = twoProcessors(context)
    const group = await ProcessGroup.start(
      'bound',
      [threading],
      [{ candidates: [mainThread], mainThread, others: [other] }],
    )
    const pid = Number(group.readyLine)
    const others = (): string[] => readdirSync(`/proc/${pid}/task`).filter((thread) => thread !== String(pid))
    const early = others()
    expect(early.length).toBeGreaterThan(0)
    expect(processorsOf(pid, String(pid))).toBe(String(mainThread))
    for (const thread of early) expect(processorsOf(pid, thread)).toBe(String(other))
    const late = String(await group.measure('thread'))
    expect(early).not.toContain(late)
    group.suspend()
    group.resume()
    expect(processorsOf(pid, String(pid))).toBe(String(mainThread))
    for (const thread of [late, ...others()]) expect(processorsOf(pid, thread)).toBe(String(other))
    await group.end()
    // There is no thread left to bind.
    group.resume()
  })

  test('uses its whole share without a bound main thread', async (context) => {
    const [, other] = twoProcessors(context)
    const group = await ProcessGroup.start('shared', [threading], [{ candidates: [], others: [other] }])
    const pid = Number(group.readyLine)
    expect(processorsOf(pid, String(pid))).toBe(String(other))
    await group.end()
  })

  test('does not start if a main thread cannot be bound', async (context) => {
    const [, other] = twoProcessors(context)
    const placements = [{ candidates: [1023], mainThread: 1023, others: [other] }]
    await expect(ProcessGroup.start('unbound', [threading], placements)).rejects.toThrow(
      /^cannot bind the main thread of unbound 0 \(\d+\) to processor 1023: taskset: /,
    )
  })

  test('does not start if placements are missing', async () => {
    await expect(
      ProcessGroup.start('crowd', [threading, threading], [{ candidates: [], others: [0] }]),
    ).rejects.toThrow('2 processes, and 1 placement')
  })
})
