import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes longest, in this order: begun last it would run alone, beside workers that have nothing left to do. */
const longest = [
  'packages/sim/test/native.test.ts',
  'tooling/fuzz/test/arguments.test.ts',
  'tooling/conformance/test/conformance.test.ts',
  'tooling/bench/test/bench.test.ts',
  'tooling/sweep/test/sweep.test.ts',
  'tooling/fuzz/test/model.test.ts',
  'packages/nccl/test/killedRank.test.ts',
  'packages/cli/test/bench.test.ts',
  'packages/launch/test/rendezvousServer.test.ts',
  'packages/cli/test/run.test.ts',
  'tooling/conformance/test/eventLoop.test.ts',
  'packages/cli/test/runEnds.test.ts',
  'tooling/bindgen/test/versions.test.ts',
  'packages/nvrtc/test/cache.test.ts',
  'tooling/bindgen/test/marshalling.test.ts',
  'tooling/fuzz/test/rankDeaths.test.ts',
]

/** The order of vitest, which knows how long a file took from earlier runs only, behind the files that take longest. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = longest.indexOf(relative(this.ctx.config.root, moduleId))
      return found < 0 ? longest.length : found
    }
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
  }
}
