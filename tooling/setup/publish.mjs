#!/usr/bin/env node
// `pnpm release [REGISTRY]`: packs all packages and publishes the versions that the registry (default: npm's) lacks. A
// package is published after the packages that it needs.
import { pathToFileURL } from 'node:url'
import { build } from './build.mjs'
import { installWorkspace } from './install.mjs'
import { packAll, requireAllBuilt } from './pack.mjs'
import { publishablePackages } from './publishable.mjs'
import { captureBeside, commandEnvironment, runMain, SetupError } from './workspace.mjs'

/** Publishes tarballs. A package waits for the packages that it needs. Returns the names of the published packages. */
export async function publishAll(tarballs, registry, env, options = []) {
  const packages = publishablePackages()
  const begun = new Map()
  const published = []
  const publishOnce = (name) => {
    if (!begun.has(name)) begun.set(name, publish(name))
    return begun.get(name)
  }
  const publish = async (name) => {
    const { dependencies, optionalDependencies, version } = packages.get(name).manifest
    const needed = Object.keys({ ...dependencies, ...optionalDependencies })
    await Promise.all(needed.filter((one) => tarballs.has(one)).map(publishOnce))
    if (await isThere(registry, name, version)) return
    const command = ['publish', tarballs.get(name).file, '--registry', registry, ...options, '--loglevel=error']
    await captureBeside('npm', command, { env })
    published.push(name)
  }
  await Promise.all([...tarballs.keys()].map(publishOnce))
  return published
}

async function isThere(registry, name, version) {
  const response = await fetch(`${registry}${name.replace('/', '%2f')}`)
  if (response.status === 404) return false
  if (!response.ok) throw new SetupError(`${registry} answers ${response.status} for ${name}.`)
  return (await response.json()).versions[version] !== undefined
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await runMain(async () => {
    const pnpmFolder = installWorkspace()
    build(pnpmFolder)
    requireAllBuilt()
    const env = commandEnvironment([pnpmFolder])
    const registry = process.argv[2] ?? (await captureBeside('npm', ['config', 'get', 'registry'], { env })).trim()
    // Only a workflow can make this statement of where the package was built.
    const options = env.GITHUB_ACTIONS === 'true' ? ['--provenance'] : []
    const published = await publishAll(await packAll(env), registry, env, options)
    process.stdout.write(`published: ${published.join(', ') || 'nothing, all versions are there already'}\n`)
  })
}
