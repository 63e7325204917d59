// Fetches Node executables of other versions from the npm packages that contain them.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fetchTools } from './fetchTools.mjs'
import { readJson, SetupError } from './workspace.mjs'

/** Installs one major version of Node into an ignored folder, once. */
export function fetchNode(major, { platform = process.platform, arch = process.arch } = {}) {
  const name = `node-${platform}-${arch}`
  const project = fetchTools(`node-${major}-${platform}-${arch}`, { [name]: major }, ['--force'])
  const installed = join(project, 'node_modules', name)
  const executable = join(installed, 'bin', 'node')
  if (!existsSync(executable)) throw new SetupError(`${name}@${major} was installed but has no bin/node.`)
  return { executable, folder: dirname(executable), version: readJson(join(installed, 'package.json')).version }
}
