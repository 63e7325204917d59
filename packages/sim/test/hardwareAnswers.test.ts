import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { buildFolder, makeTests, readFacts } from './build.js'

const answersFolder = fileURLToPath(new URL('hardwareAnswers', import.meta.url))

// What two H200s answered on 2026-11-21 (driver 580.159.04, CUDA 13.0, NCCL 2.28.3 and 2.30.7, NVSHMEM 3.4.5), recorded
const recorded = (name: string) => readFacts(readFileSync(join(answersFolder, 'recorded', name), 'utf8'))

// Answers that no hardware gives: where it crashes, and to what that machine has no reason to ask. Questions that were
// not recorded yet belong here too: what the documentation says and, where it says nothing, what the software device
// was made to answer.
const unconfirmed = () => readFacts(readFileSync(join(answersFolder, 'unconfirmed', 'cuda.txt'), 'utf8'))

/** Where the software device means to differ, or hardware's answer depends on the moment or on what memory held. */
const differences: Readonly<Record<string, string>> = {
  'modules.newer ptx': 'newer PTX is loaded, and instructions that are not known are refused by name',
  'without context.objects.cuEventQuery': 'a GPU needs a moment to record; here an idle stream records at once',
  'events and streams.released query': 'asked right after the release',
  'events and streams.query stream of other context': 'asked right after a fill was queued',
  'memory.cuMemFree after it': 'a second free of the same memory, which hardware may or may not notice',
  'modules.folder': 'hardware reports a folder as out of memory',
  'modules.library garbage': 'libraries load lazily on hardware; here an image is refused when it is given',
  'modules.library bad ptx': 'the same',
  'dead created with another.cuEventQuery.result': 'the memory of the dead context is in use again',
  'dead created with another.cuEventSynchronize.result': 'the same',
  'dead created with another.cuEventRecord.result': 'the same',
  'dead created with another.cuEventDestroy.result': 'the same',
  'dead created with another.cuCtxDestroy.result': 'the same',
  'initialization.Count value': 'NCCL counts 0 ranks after the refused calls before it',
  'alone.after destroy Count': 'NCCL reads memory that it has freed',
  'physical memory.compressible got compression': 'nothing is compressed here, and attribute 107 says so',
  'devices.attribute 112': 'that machine has no sparse arrays; here they are memory like any other',
  'devices.attribute 121': 'the same for arrays whose memory is mapped later',
  'mapped.map beyond the range.result':
    "beyond a reservation lies what is somebody else's; hardware maps it all the same",
  'groups.after finalize': 'NCCL does not check; here work after the end is refused',
}

/**
 * The same of NVSHMEM, which checks little: what it answers to wrong arguments is chance, or the end of the process.
 */
const nvshmemDifferences: Readonly<Record<string, string>> = {
  'malloc too much ends with': 'here a heap that cannot grow gives no memory, which a program can be told of',
  'calloc overflow ends with': 'the same',
  'ptr of PE -1.answer': 'NVSHMEM reads what lies before its table',
  'stride -1.answer': 'NVSHMEM goes backwards from the element, which the specification does not have',
  'atomic.answer': 'NVSHMEM implements no atomics for the host: it says so and returns 0',
  'translate PE 2.answer': 'NVSHMEM reads behind its table; the specification has -1',
  'translate PE -1.answer': 'the same before it',
  'split start -1.answer': 'NVSHMEM calls a success what makes no team',
  'split start 2.answer': 'the same',
  'split stride 0.answer': 'the same',
  'split size 0.answer': 'the same',
  'split size 3.answer': 'the same',
  'split 2d 0.answer': 'the same',
  'team init without id.answer': 'the same',
  'broadcast root 2 ends with': 'NVSHMEM hands the root on to NCCL, and ends with its refusal; here it is a status',
}

/** The same of NCCL 2.30.7. */
const communicatorDifferences: Readonly<Record<string, string>> = {
  'split.negative color by 0': 'NCCL takes it as a color; its documentation has none below 0',
  'split.negative color by 1': 'the same',
  'shrink.bad flags': 'NCCL does not look at flags it does not know',
  'suspend.flags 0': 'the same',
  'suspend.flags 2': 'the same',
  'alone window of no such flag.result': 'the same',
  'alone shrink by a rank beyond.result': 'NCCL passes over ranks that are not there',
  'alone reduce while suspended.result': 'NCCL queues work on memory that is gone, which costs the context',
  'alone stream of a reduce while suspended.result': 'the same',
  'alone sizes differ.result': 'its documentation has symmetric windows of one size',
  'alone put beyond the window.result': 'NCCL writes to what lies behind the window',
}

/** Where hardware crashes or never answers the software device answers with an error; there is nothing to compare. */
const isNoAnswer = (name: string): boolean => name.endsWith(' ends by signal') || name.endsWith(' does not end')

const ask = (program: string) => execFileSync(program, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })

function compare(program: string, record: string, known = differences): void {
  const text = ask(program)
  const answers = readFacts(text)
  const want = recorded(record)
  const wrong: string[] = []
  let compared = 0
  for (const [name, value] of want) {
    if (isNoAnswer(name) || name in known) continue
    compared += 1
    if (answers.get(name) !== value) wrong.push(`${name}: hardware ${value}, software ${answers.get(name)}`)
  }
  expect(wrong).toEqual([])
  expect(compared).toBeGreaterThan(want.size / 2)
  expect([...answers.keys()].filter(isNoAnswer)).toEqual([])
}

beforeAll(makeTests, 900_000)
const [cuda, nccl, communicators, nvshmem] = (['cuda', 'nccl', 'nccl-communicators', 'nvshmem'] as const).map((name) =>
  join(buildFolder, 'test', `probe-${name}`),
) as [string, string, string, string]

test('CUDA calls answer as hardware does', () => compare(cuda, 'cuda.txt'))
test('questions that no hardware answers are answered as before', () => {
  const answers = readFacts(ask(cuda))
  const known = recorded('cuda.txt')
  const wrong: string[] = []
  for (const [name, value] of unconfirmed()) {
    if (known.has(name) || name in differences) continue
    if (answers.get(name) !== value) wrong.push(`${name}: noted ${value}, software ${answers.get(name)}`)
  }
  expect(wrong).toEqual([])
})
test('every question is answered somewhere', () => {
  const answers = readFacts(ask(cuda))
  const known = new Set([...recorded('cuda.txt').keys(), ...unconfirmed().keys()])
  // Where hardware crashed, what would have come after is unknown
  const crashed = [...known].filter((name) => name.endsWith(' ends by signal')).map((name) => name.slice(0, -15))
  const unknown = [...answers.keys()].filter(
    (name) => !known.has(name) && !crashed.some((start) => name.startsWith(start)),
  )
  expect(unknown).toEqual([])
})
test('NCCL calls answer as hardware does', () => compare(nccl, 'nccl.txt'))
test('NCCL 2.30 calls answer as hardware does', () => {
  compare(communicators, 'nccl-communicators.txt', communicatorDifferences)
})
test('NVSHMEM calls answer as hardware does', () => compare(nvshmem, 'nvshmem.txt', nvshmemDifferences))
test('every difference is one', () => {
  const known = new Set([...recorded('cuda.txt').keys(), ...recorded('nccl.txt').keys()])
  for (const name of Object.keys(differences)) expect(known).toContain(name)
  for (const [program, record, ofIt] of [
    [nvshmem, 'nvshmem.txt', nvshmemDifferences],
    [communicators, 'nccl-communicators.txt', communicatorDifferences],
  ] as const) {
    const hardware = recorded(record)
    const software = readFacts(ask(program))
    for (const name of Object.keys(ofIt)) {
      expect(hardware.has(name), name).toBe(true)
      expect(software.get(name), name).not.toBe(hardware.get(name))
    }
  }
})
