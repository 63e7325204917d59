import { beforeAll, describe, expect, test } from 'vitest'
import { runArgumentSweep } from '../dist/arguments/index.js'

let sweep: Awaited<ReturnType<typeof runArgumentSweep>>

beforeAll(async () => {
  sweep = await runArgumentSweep({})
})

describe('every function outside exclusions.ts, with 45 kinds of wrong arguments', () => {
  test('is called', () => {
    expect(sweep.asked).toBeGreaterThan(80_000)
    expect(sweep.refused).toBeGreaterThan(0.9 * sweep.asked)
  })

  test('refuses with a typed error, without a crash', () => {
    expect(sweep.failures).toEqual([])
    expect(sweep.typed).toBe(sweep.refused)
  })

  test('names the function and the parameter in at least 99 of 100 refusals', () => {
    expect(sweep.named / sweep.refused, sweep.unnamed.slice(0, 20).join('\n')).toBeGreaterThanOrEqual(0.99)
  })

  test('accepts no wrong argument', () => {
    expect(sweep.accepted).toEqual([])
  })
})
