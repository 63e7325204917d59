// Builds the native and TypeScript parts through turbo, which skips unchanged packages.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { say } from './install.mjs'
import { commandEnvironment, root, SetupError } from './workspace.mjs'

/** Builds the workspace. Shows output only if a build fails. */
export function build(pnpmFolder) {
  say('building what has changed')
  const options = ['--output-logs=errors-only', '--no-update-notifier']
  const result = spawnSync(join(root, 'node_modules', '.bin', 'turbo'), ['run', 'build:native', 'build', ...options], {
    cwd: root,
    env: commandEnvironment([pnpmFolder]),
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  if (result.error) throw new SetupError(`turbo cannot be started: ${result.error.message}`)
  if (result.status !== 0) throw new SetupError(`${result.stdout}${result.stderr}\nThe build failed; see above.`)
}
