import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { exceptions } from './recorded/exceptions.js'

process.env['SHOAL_DEVICE'] ??= 'sim'
// The number of an H200, whose answers are recorded.
process.env['SHOAL_SIM_MULTIPROCESSORS'] = '132'
const { Device } = await import('@shoal/driver')
const { Device: RuntimeDevice } = await import('@shoal/runtime')
const { digest, digestsOf, referenceAnswers, referenceRun } = await import('../dist/reference/referenceRun.js')
const { compare } = await import('../dist/reference/compare.js')
const { includeFolder } = await import('../dist/reference/program.js')
const { Random } = await import('../dist/support/random.js')

const compiler = spawnSync(process.env['CXX'] ?? 'g++', ['--version']).status === 0
const lacking = includeFolder() === undefined ? 'there is no cuda.h' : compiler ? undefined : 'there is no g++'

const programFolder = scratchFolder()

describe('the reference cases on the software device', () => {
  it('have exactly the values of a C++ program', { timeout: 300_000 }, (context) => {
    if (lacking !== undefined) context.skip(lacking)
    const packages = { driver: Device.get(0), runtime: RuntimeDevice.get(0) }
    const seed = Math.floor(Math.random() * 2 ** 32)
    const { ok, lines, data } = referenceRun(packages, new Random(seed), programFolder)
    expect(ok, `${lines.slice(-40).join('\n')}\nseed ${seed}`).toBe(true)
    const { counts } = data as { counts: Record<string, Record<string, number>> }
    const parts = ['device', 'split', 'stream', 'pool', 'graph', 'kernel', 'occupancy', 'texture', 'tensorMap']
    for (const part of parts.flatMap((name) => [`driver ${name}`, `runtime ${name}`]))
      expect(counts[part]?.['equal'], part).toBeGreaterThan(100)
    expect(counts['all']?.['refused']).toBeGreaterThan(10)
    expect(counts['all']?.['refusedHere']).toBeGreaterThan(10)
  })
})

describe('recorded answers of an H200', () => {
  it('equal those of the software device, except for counted exceptions', { timeout: 300_000 }, (context) => {
    if (lacking !== undefined) context.skip(lacking)
    const file = new URL('recorded/h200.json', import.meta.url)
    const { seed, answers: recorded } = JSON.parse(readFileSync(file, 'utf8'))
    const answers = referenceAnswers(new Random(seed), programFolder) as Record<string, Record<string, never>>
    expect(digestsOf(answers), 'other cases, or answers: record them anew').toSatisfy(
      (ours: object) => Object.keys(ours).sort().join() === Object.keys(recorded).sort().join(),
    )
    const differing = (given: typeof answers): string[] => {
      const digests = digestsOf(given)
      return Object.keys(given).filter((title) => digests[digest(title)] !== recorded[digest(title)])
    }
    const left = new Set(differing(answers))
    for (const { reason, cases, isOf, exempt } of exceptions) {
      const found = [...left].filter(isOf)
      expect(found, reason).toHaveLength(cases)
      for (const title of found) left.delete(title)
      if (exempt === undefined) continue
      const exempted = found.map((title) => [title, exempt(answers[title] as never)])
      expect(differing(Object.fromEntries(exempted)), reason).toEqual([])
    }
    expect([...left], 'the software device answers otherwise').toEqual([])
  })
})

describe('the comparison of answers', () => {
  it('counts equal values, each value and each four bytes', () => {
    const answer = { a: 1, b: [2, 'x', null], bytes: '00'.repeat(64) }
    expect(compare(answer, structuredClone(answer))).toEqual({
      equal: 20,
      refused: 0,
      refusedHere: 0,
      stricter: [],
      different: [],
    })
  })

  it('names each value that differs, is missing or is extra', () => {
    expect(compare({ a: [1, 2], b: 3 }, { a: [1, 5, 6], c: 3 }).different).toEqual([
      'a[1]: 2 in Shoal, 5 in C++',
      'a[2]: nothing in Shoal, 6 in C++',
      'b: 3 in Shoal, nothing in C++',
      'c: nothing in Shoal, 3 in C++',
    ])
    const bytes = '01'.repeat(32)
    expect(compare(bytes, bytes.replace(/01$/, '03')).different).toEqual([
      'the case, bytes from 28: 01010101 in Shoal, 01010103 in C++',
    ])
  })

  it('distinguishes equal refusals, early refusals, extra refusals and other statuses', () => {
    const refused = { refused: 'CUDA_ERROR_INVALID_VALUE' }
    const here = { refusedHere: 'f: x must be 1, not 2' }
    expect(compare(refused, { ...refused })).toMatchObject({ equal: 0, refused: 1, different: [] })
    expect(compare(here, refused)).toMatchObject({ refusedHere: 1, stricter: [], different: [] })
    expect(compare(here, 5).stricter).toHaveLength(1)
    expect(compare(5, refused).different).toHaveLength(1)
    expect(compare(refused, { refused: 'CUDA_ERROR_NOT_SUPPORTED' }).different).toHaveLength(1)
  })
})
