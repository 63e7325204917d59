// Native and TypeScript builds through turbo, which skips what has not changed.

import { join } from 'node:path'
import { commandEnvironment, root, run, SetupError } from './workspace.mjs'

/** Builds the workspace, or only the packages that `filters` (turbo's syntax) name. */
export function build(pnpmFolder, filters = []) {
  const status = run(
    join(root, 'node_modules', '.bin', 'turbo'),
    [
      'run',
      'build:native',
      'build',
      '--output-logs=errors-only',
      '--log-prefix=task',
      '--no-update-notifier',
      ...filters.map((filter) => `--filter=${filter}`),
    ],
    { env: commandEnvironment([pnpmFolder]) },
  )
  if (status !== 0) throw new SetupError('The build failed; the messages are above.')
}
