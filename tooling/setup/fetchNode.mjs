// Node executables of other versions, from the npm packages that carry them.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cacheFolder, capture, commandEnvironment, readJson, SetupError } from './workspace.mjs'

/** Installs Node of one major version into an ignored folder, once. */
export function fetchNode(major, { platform = process.platform, arch = process.arch } = {}) {
  const name = `node-${platform}-${arch}`
  const project = join(cacheFolder, 'nodes', `${platform}-${arch}-${major}`)
  const installed = join(project, 'node_modules', name)
  const executable = join(installed, 'bin', 'node')
  if (!existsSync(executable)) {
    mkdirSync(project, { recursive: true })
    writeFileSync(join(project, 'package.json'), `${JSON.stringify({ private: true })}\n`)
    const options = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', '--force']
    capture('npm', ['install', ...options, `${name}@${major}`], { cwd: project, env: commandEnvironment() })
    if (!existsSync(executable)) throw new SetupError(`${name}@${major} was installed but has no bin/node.`)
  }
  return { executable, folder: dirname(executable), version: readJson(join(installed, 'package.json')).version }
}
