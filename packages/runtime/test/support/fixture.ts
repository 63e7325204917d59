import {
  type FixtureOptions,
  type FixtureResult,
  runFixture as run,
} from '../../../driver/test/support/fixtureProcess.js'

/** Runs a script of ./fixtures in a separate process. */
export function runFixture(
  name: string,
  environment?: Readonly<Record<string, string | undefined>>,
  options?: FixtureOptions,
): Promise<FixtureResult> {
  return run(new URL(`../fixtures/${name}`, import.meta.url), environment, options)
}
