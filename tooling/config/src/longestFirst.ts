import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes longest, in seconds: begun last it would run alone, beside workers that have nothing left to do. */
const seconds = JSON.parse(readFileSync(new URL('../testSeconds.json', import.meta.url), 'utf8')) as Record<
  string,
  number
>

/** The order of vitest, which knows how long a file took from earlier runs only, behind the files that take longest. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const length = ({ moduleId }: TestSpecification): number => seconds[relative(this.ctx.config.root, moduleId)] ?? 0
    return (await super.sort(files)).sort((a, b) => length(b) - length(a))
  }
}
