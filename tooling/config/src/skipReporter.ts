import { relative } from 'node:path'
import type { Reporter, TestCase, TestModule } from 'vitest/node'

/** Prints why each skipped test was skipped, and fails the run when one gives no reason. */
export default class SkipReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const byReason = new Map<string, TestCase[]>()
    for (const module of modules) {
      for (const test of module.children.allTests('skipped')) {
        const result = test.result()
        const reason = (result.state === 'skipped' && result.note) || ''
        byReason.set(reason, [...(byReason.get(reason) ?? []), test])
      }
    }
    const silent = byReason.get('') ?? []
    byReason.delete('')
    for (const [reason, tests] of byReason) print(`skipped ${tests.length}: ${reason}`, tests)
    // A name filter (-t) skips the rest of a file without a reason, as the caller asked.
    const filtered = process.argv.some((argument) => argument === '-t' || argument.startsWith('--testNamePattern'))
    if (silent.length > 0 && !filtered) {
      print(`skipped ${silent.length} without a reason (say it: context.skip('why'))`, silent)
      process.exitCode = 1
    }
  }
}

function print(title: string, tests: readonly TestCase[]): void {
  process.stdout.write(`\n${title}\n`)
  for (const test of tests) {
    process.stdout.write(`  ${relative(process.cwd(), test.module.moduleId)} > ${test.fullName}\n`)
  }
}
