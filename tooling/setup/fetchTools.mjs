// Fetches tools from npm that only some commands need. They are not part of the workspace, which everyone installs.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder, capture, commandEnvironment, readJson } from './workspace.mjs'

/** Installs packages (name → version) into an ignored folder, once. Returns that folder. */
export function fetchTools(name, dependencies, options = []) {
  const project = join(cacheFolder, 'tools', name)
  const file = join(project, 'package.json')
  const stamp = join(project, 'installed.json')
  if (existsSync(stamp) && JSON.stringify(readJson(stamp)) === JSON.stringify(dependencies)) return project
  mkdirSync(project, { recursive: true })
  writeFileSync(file, `${JSON.stringify({ private: true, dependencies })}\n`)
  const quiet = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  capture('npm', ['install', ...quiet, ...options], { cwd: project, env: commandEnvironment() })
  writeFileSync(stamp, JSON.stringify(dependencies))
  return project
}
