// Copies built workspace packages and the npm packages that they need into one flat node_modules.
import { cpSync, existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { readJson, root, SetupError } from '../../setup/workspace.mjs'

/** The parts of a workspace package that the host needs, in addition to its package.json. */
const workspaceParts = ['answers', 'bin', 'dist', 'kernels', 'native', 'ptx', 'python', 'questions']
/** Folders of npm packages that no program reads on linux-x64 with glibc. */
const unusedFolders = new Set(['doc', 'docs', 'vendor', 'musl_x64', 'test', 'tests', 'node_modules'])

/** Copies the packages in the folders `entries` with everything that they need at run time. Returns their names. */
export function copyPackages(entries, target) {
  const workspace = workspacePackages()
  const copied = new Map()
  const queue = entries.map((folder) => ({ folder: join(root, folder), internal: true }))
  while (queue.length > 0) {
    const { folder, internal } = queue.pop()
    const manifest = readJson(join(folder, 'package.json'))
    const before = copied.get(manifest.name)
    if (before === manifest.version) continue
    if (before !== undefined)
      throw new SetupError(`${manifest.name} is needed in two versions: ${before}, ${manifest.version}.`)
    copied.set(manifest.name, manifest.version)
    const place = join(target, manifest.name)
    if (internal) copyWorkspacePackage(folder, place, manifest)
    else copyNpmPackage(folder, place)
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
      if (workspace.has(name)) queue.push({ folder: workspace.get(name), internal: true })
      else queue.push(...npmPackage(name, folder, manifest))
    }
  }
  // The records of libraries are not a package. Their readers import them by path.
  cpSync(join(root, 'tooling', 'libraries'), join(target, '@shoal', 'libraries'), {
    recursive: true,
    filter: (file) => !/\.(d\.mts|ts)$/.test(file),
  })
  return [...copied.keys()].sort()
}

function workspacePackages() {
  const found = new Map()
  for (const parent of ['packages', 'tooling', 'docs/examples']) {
    for (const folder of readdirSync(join(root, parent))) {
      const path = join(root, parent, folder)
      if (existsSync(join(path, 'package.json'))) found.set(readJson(join(path, 'package.json')).name, path)
    }
  }
  return found
}

function copyWorkspacePackage(folder, place, manifest) {
  if (!existsSync(join(folder, 'dist'))) throw new SetupError(`${manifest.name} is not built: it has no dist folder.`)
  mkdirSync(place, { recursive: true })
  const { devDependencies: _, scripts: __, ...shipped } = manifest
  writeFileSync(join(place, 'package.json'), `${JSON.stringify(shipped, null, 2)}\n`)
  for (const part of workspaceParts) {
    // A package with prebuilt binaries does not need its sources on the host.
    if (part === 'native' && existsSync(join(folder, 'prebuilds'))) continue
    if (existsSync(join(folder, part))) {
      cpSync(join(folder, part), join(place, part), {
        recursive: true,
        filter: (file) => !/(\.d\.ts|\.map|\.o)$/.test(file) && basename(file) !== '__pycache__',
      })
    }
  }
}

function copyNpmPackage(folder, place) {
  cpSync(folder, place, {
    recursive: true,
    dereference: true,
    filter: (file) => {
      const parts = relative(folder, file).split(sep)
      return !parts.some((part) => unusedFolders.has(part)) && !/\.(md|d\.ts|map|cc|hh|h|S|asm|txt)$/.test(file)
    },
  })
}

/** Finds an npm package in pnpm's layout: next to its dependent, or in the dependent's own node_modules. */
function npmPackage(name, dependent, manifest) {
  const real = realpathSync(dependent)
  const places = [join(real, 'node_modules', name), join(nodeModulesAbove(real), name)]
  const place = places.find((candidate) => existsSync(join(candidate, 'package.json')))
  if (place && isForHere(readJson(join(place, 'package.json'))))
    return [{ folder: realpathSync(place), internal: false }]
  if (manifest.optionalDependencies?.[name]) return []
  throw new SetupError(`${manifest.name} needs ${name}, which is not installed.`)
}

/** Is true for a native package of this platform. */
function isForHere({ cpu = [process.arch] }) {
  return cpu.includes(process.arch)
}

function nodeModulesAbove(folder) {
  let parent = dirname(folder)
  while (basename(parent) !== 'node_modules' && parent !== dirname(parent)) parent = dirname(parent)
  return parent
}
