import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, type TestContext, test } from 'vitest'
import { Contestant } from '../src/contestant.js'
import { Crew, type Member } from '../src/ranks/crew.js'
import {
  describeFronts,
  findQuietFronts,
  findQuietPlaces,
  findShares,
  frontsOf,
  placesIn,
  quietnessOf,
} from '../src/ranks/places.js'
import { allowedProcessors, numbersIn, sharesOf } from '../src/ranks/processors.js'

afterAll(() => Contestant.closeAll())

/** The quiet processors take 11 µs, all others 17. */
function timesWith(quiet: readonly number[]): Map<number, number> {
  return new Map(numbersIn('0-63').map((processor) => [processor, quiet.includes(processor) ? 11 : 17]))
}

describe('places', () => {
  test.for([
    // The first of those that are the same.
    {
      processes: 2,
      all: '0-31',
      quiet: [3, 19, 20],
      candidates: ['3,0-2', '19-20,16-17'],
      rests: ['4-15', '18,21-31'],
    },
    { processes: 1, all: '0-31', quiet: [12, 15, 16], candidates: ['12,15,0-1'], rests: ['2-11,13-14'] },
    { processes: 1, all: '4-7', quiet: [7], candidates: ['7'], rests: ['4-6'] },
    { processes: 2, all: '2-9', quiet: [], candidates: ['2', '6'], rests: ['3-5', '7-9'] },
  ])('of $processes on $all, quiet $quiet', ({ processes, all, quiet, candidates, rests }) => {
    const places = placesIn(sharesOf(processes, numbersIn(all)) ?? [], timesWith(quiet))
    const wanted = candidates.map((list, index) => {
      const [front] = numbersIn(list)
      return { candidates: numbersIn(list), front, rest: numbersIn(rests[index] ?? '') }
    })
    expect(places).toEqual(wanted)
    expect(frontsOf(places)).toEqual(candidates.flatMap(numbersIn))
  })

  test('have their main threads where it is quiet now', () => {
    const places = placesIn(sharesOf(2, numbersIn('0-31')) ?? [], timesWith([1, 3, 17]))
    expect(places.map(({ front }) => front)).toEqual([1, 17])
    const asked: number[][] = []
    findQuietFronts(places, (processors) => {
      asked.push([...processors])
      return timesWith([3, 19])
    })
    // Those of the candidates alone are measured.
    expect(asked).toEqual([[1, 3, 0, 2, 17, 16, 18, 19]])
    expect(places.map(({ front }) => front)).toEqual([3, 19])
  })

  test('are not looked for again where each has one candidate, or none', () => {
    const never = (): never => {
      throw new Error('measured')
    }
    const places = placesIn(sharesOf(2, numbersIn('2-9')) ?? [], timesWith([]))
    findQuietFronts(places, never)
    expect(places.map(({ front }) => front)).toEqual([2, 6])
    findQuietFronts(undefined, never)
    findQuietFronts([{ candidates: [], rest: [1] }], never)
  })

  test('are none where there are too few processors', () => {
    const processes = allowedProcessors().length + 1
    expect(findQuietPlaces(processes)).toBeUndefined()
    expect(findShares(processes)).toBeUndefined()
    expect(frontsOf(undefined)).toEqual([])
  })

  test('are told in one line', () => {
    expect(describeFronts([['one process', []]])).toContain('No thread is bound to a processor')
    const line = describeFronts([
      ['one process', [3]],
      ['one a rank', [3, 19]],
    ])
    expect(line).toMatch(/quietest of these processors: 3 \(one process\); 3, 19 \(one a rank\)$/)
  })
})

test('quiet.c times each processor that it is given', (context) => {
  try {
    execFileSync(process.env['CC'] || 'gcc', ['--version'], { stdio: 'ignore' })
  } catch {
    context.skip('no gcc on this machine')
  }
  const allowed = allowedProcessors()
  if (allowed.length === 0) return context.skip('no taskset here')
  const times = quietnessOf(allowed)
  expect([...times.keys()]).toEqual(allowed)
  // So long that nothing of the loop was left out, even on a fast machine.
  for (const time of times.values()) expect(time).toBeGreaterThan(200)
  expect(() => quietnessOf([1023])).toThrow('processor 1023')
})

/** Tells an id, then its process number, then the number of a thread that it has started, again and again. */
const threading: Member = {
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
  const [front, rest] = allowedProcessors()
  if (front === undefined) context.skip('no taskset here')
  if (rest === undefined) context.skip('one processor')
  return [front, rest] as [number, number]
}

function processorsOf(pid: number, thread: string): string {
  const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8')
  return /^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? ''
}

describe('a crew in places', () => {
  test('has its main thread alone on the front, also when threads come later', async (context) => {
    const [front, rest] = twoProcessors(context)
    const crew = await Crew.start('bound', [threading], [{ candidates: [front], front, rest: [rest] }])
    const pid = Number(crew.greeting)
    const others = (): string[] => readdirSync(`/proc/${pid}/task`).filter((thread) => thread !== String(pid))
    const early = others()
    expect(early.length).toBeGreaterThan(0)
    expect(processorsOf(pid, String(pid))).toBe(String(front))
    for (const thread of early) expect(processorsOf(pid, thread)).toBe(String(rest))
    const late = String(await crew.ask('thread'))
    expect(early).not.toContain(late)
    crew.rest()
    crew.wake()
    expect(processorsOf(pid, String(pid))).toBe(String(front))
    for (const thread of [late, ...others()]) expect(processorsOf(pid, thread)).toBe(String(rest))
    await crew.end()
    // There is nothing to settle any more.
    crew.wake()
  })

  test('lies on its whole share where no front is asked for', async (context) => {
    const [, rest] = twoProcessors(context)
    const crew = await Crew.start('shared', [threading], [{ candidates: [], rest: [rest] }])
    const pid = Number(crew.greeting)
    expect(processorsOf(pid, String(pid))).toBe(String(rest))
    await crew.end()
  })

  test('is none where a main thread cannot be bound', async (context) => {
    const [, rest] = twoProcessors(context)
    const places = [{ candidates: [1023], front: 1023, rest: [rest] }]
    await expect(Crew.start('unbound', [threading], places)).rejects.toThrow(
      /^cannot bind the main thread of unbound 0 \(\d+\) to processor 1023: taskset: /,
    )
  })

  test('is none where places are missing', async () => {
    await expect(Crew.start('crowd', [threading, threading], [{ candidates: [], rest: [0] }])).rejects.toThrow(
      '2 processes, and 1 place',
    )
  })
})
