import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { libraries, libraryFolder } from '@shoal/sim'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  askCorners,
  type CornerAnswers,
  cornerDifferences,
  cornerProblems,
  isNoAnswer,
  recordedAnswers,
} from '../../../tooling/sweep/dist/askCorners.js'
import { cornerLists } from '../../../tooling/sweep/dist/corners.js'
import { nativeFolder } from './build.js'

// Two H200s answered on 2026-11-21 (driver 580.159.04, CUDA 13.0, NCCL 2.28.3 and 2.30.7, NVSHMEM 3.4.5).
const needed = { cuda: [], nccl: ['nccl'], 'nccl-communicators': ['nccl'], nvshmem: ['nvshmem'] } as const
const folder = mkdtempSync(join(tmpdir(), 'shoal-corners-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each(cornerLists)('corner cases of %s', (list) => {
  let answers: CornerAnswers
  const recorded = recordedAnswers(list)
  const known = cornerDifferences[list]

  beforeAll(async () => {
    const files = [...needed[list], 'cuda' as const].map((name) => join(libraryFolder(), libraries[name]))
    answers = await askCorners(list, {
      libraries: files,
      include: join(nativeFolder, 'include'),
      folder,
      isHardware: false,
    })
  }, 900_000)

  test('are answered like hardware', () => {
    expect(cornerProblems(list, answers)).toEqual([])
    expect(Object.keys(answers).length).toBeGreaterThanOrEqual(Object.keys(recorded).length - 30)
    expect(Object.keys(answers).filter(isNoAnswer)).toEqual([])
  })

  test('differ from hardware only where documented', () => {
    // These answers depend on timing.
    const fixed = list === 'cuda' || list === 'nccl' ? [] : Object.keys(known)
    for (const name of Object.keys(known)) expect(recorded, name).toHaveProperty([name])
    expect(fixed.filter((name) => answers[name] === recorded[name])).toEqual([])
  })

  // Only questions to the driver are recorded.
  if (list !== 'cuda') return
  test('are answered as documented if hardware has no answer', () => {
    const noted = recordedAnswers('unconfirmed')
    const wrong = Object.entries(noted).filter(([name, value]) => !(name in recorded) && answers[name] !== value)
    expect(wrong).toEqual([])
    // Questions that follow a hardware crash have no recorded answer.
    const crashed = Object.keys(recorded).flatMap((name) => (isNoAnswer(name) ? [name.slice(0, -15)] : []))
    const unknown = Object.keys(answers).filter(
      (name) => !(name in recorded) && !(name in noted) && !crashed.some((start) => name.startsWith(start)),
    )
    expect(unknown).toEqual([])
  })
})
