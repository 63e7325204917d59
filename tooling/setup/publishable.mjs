// Lists the packages that get published, and which of them each one needs.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readJson, root } from './workspace.mjs'

/** Every public package under packages/, by name. Its platform packages and its sources come before it. */
export function publishablePackages() {
  const packages = new Map()
  const add = (path) => {
    if (!existsSync(join(path, 'package.json'))) return
    const manifest = readJson(join(path, 'package.json'))
    if (!manifest.private) packages.set(manifest.name, { name: manifest.name, path, manifest })
  }
  for (const folder of foldersIn(join(root, 'packages'))) {
    for (const prebuilt of foldersIn(join(folder, 'prebuilds'))) add(prebuilt)
    add(join(folder, 'native'))
    add(folder)
  }
  return packages
}

function foldersIn(parent) {
  if (!existsSync(parent)) return []
  const names = readdirSync(parent).sort()
  return names.map((name) => join(parent, name))
}

/** Returns `name` and all workspace packages that it needs at run time, itself first. */
export function closure(packages, name, seen = new Set()) {
  if (!packages.has(name) || seen.has(name)) return seen
  seen.add(name)
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = packages.get(name).manifest
  for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
    closure(packages, dependency, seen)
  }
  return seen
}

/** Returns the import specifiers that a package's `exports` offers as code. */
export function entryPoints({ name, manifest }) {
  const paths = Object.keys(manifest.exports).filter((path) => !path.endsWith('.json') && !path.includes('*'))
  return paths.map((path) => (path === '.' ? name : `${name}/${path.slice(2)}`))
}
