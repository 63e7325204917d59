import { describe, expect, type TestContext, test } from 'vitest'
import { leftBehind } from '../../../packages/driver/test/support/left.js'

process.env['SHOAL_DEVICE'] ??= 'sim'
const { isSoftwareDevice } = await import('@shoal/driver')
const { runCase, suites } = await import('@shoal/conformance')

type Suite = (typeof suites)[number]

async function ask(suite: Suite, one: Suite['cases'][number], context: TestContext): Promise<void> {
  const result = await runCase(suite, one)
  if (result.outcome === 'skip') context.skip(result.reason)
  if (result.outcome === 'fail') throw new Error(`repeat with SHOAL_SEED=${result.seed}`, { cause: result.error })
}

for (const suite of suites) {
  describe(suite.name, () => {
    for (const one of suite.cases) {
      test(one.name, { timeout: 4 * (one.timeout ?? 60_000) + 60_000 }, async (context) => {
        if (isSoftwareDevice()) expect(await leftBehind(() => ask(suite, one, context)), 'left behind').toBe('')
        else await ask(suite, one, context)
      })
    }
  })
}
