import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The seconds that long test files take. A long file that starts last would run alone while the other workers are idle.
 */
const seconds = JSON.parse(readFileSync(new URL('../testSeconds.json', import.meta.url), 'utf8')) as Record<
  string,
  number
>

/**
 * Runs the longest test files first. All others follow in vitest's order, which knows only the times of earlier runs.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const length = ({ moduleId }: TestSpecification): number => seconds[relative(this.ctx.config.root, moduleId)] ?? 0
    return (await super.sort(files)).sort((a, b) => length(b) - length(a))
  }
}
