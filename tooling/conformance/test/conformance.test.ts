import { describe, test } from 'vitest'

process.env['SHOAL_DEVICE'] ??= 'sim'
const { runCase, suites } = await import('@shoal/conformance')

for (const suite of suites) {
  describe(suite.name, () => {
    for (const one of suite.cases) {
      test(one.name, { timeout: (one.timeout ?? 60_000) + 5_000 }, async (context) => {
        const result = await runCase(suite, one)
        if (result.outcome === 'skip') context.skip(result.reason)
        if (result.outcome === 'fail') {
          throw new Error(`repeat with SHOAL_SEED=${result.seed}`, { cause: result.error })
        }
      })
    }
  })
}
