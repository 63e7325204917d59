#!/usr/bin/env node
// Writes the fields that all manifests of published packages share, and the complete manifests of the platform
// packages. Run it with `node tooling/setup/manifests.mjs`; a test compares the files.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { publishablePackages } from './publishable.mjs'
import { capture, root, manifest as rootManifest } from './workspace.mjs'

/** The platforms with native files. The names are those that sharp made common: a plain `linux` means glibc. */
export const platforms = {
  'linux-x64': {
    system: 'Linux with glibc on x86-64',
    ...{ os: 'linux', cpu: 'x64', libc: 'glibc' },
    ...{ compiler: 'x86_64-linux-gnu-g++', install: 'g++-x86-64-linux-gnu' },
  },
  'linux-arm64': {
    system: 'Linux with glibc on 64-bit Arm',
    ...{ os: 'linux', cpu: 'arm64', libc: 'glibc' },
    ...{ compiler: 'aarch64-linux-gnu-g++', install: 'g++-aarch64-linux-gnu' },
  },
}

/** The native files of each package that has some. */
export const nativeFiles = {
  '@shoal/ffi': ['shoal_ffi.node'],
  '@shoal/sim': [
    'libshoal-sim-cuda.so.1',
    'libshoal-sim-ptx.so.1',
    'libshoal-sim-cudart.so.13',
    'libshoal-sim-nccl.so.2',
    'libshoal-sim-nvshmem_host.so.3',
  ],
}

/** Returns the manifests as they must be: file → content. */
export function manifests() {
  const wanted = new Map()
  const packages = [...publishablePackages().values()].filter(({ manifest }) => manifest.os === undefined)
  for (const { name, path, manifest } of packages) {
    const file = (folder) => join(path, folder, 'package.json')
    wanted.set(file('.'), completed(manifest, path))
    if (nativeFiles[name] === undefined) continue
    for (const platform of Object.keys(platforms)) {
      const folder = join('prebuilds', platform)
      wanted.set(file(folder), completed(platformManifest(name, manifest, platform), join(path, folder)))
    }
  }
  return wanted
}

function platformManifest(name, { version, engines, keywords }, platform) {
  const { system, os, cpu, libc } = platforms[platform]
  return {
    name: `${name}-${platform}`,
    version,
    description: `The native files of ${name} for ${system}`,
    keywords,
    // Yarn must not leave these files in an archive, because the system's loader reads them.
    preferUnplugged: true,
    engines,
    os: [os],
    cpu: [cpu],
    libc: [libc],
    files: nativeFiles[name],
    exports: { './package.json': './package.json' },
    publishConfig: { access: 'public' },
  }
}

function completed(own, path) {
  const { homepage, bugs, license } = rootManifest
  const repository = { ...rootManifest.repository, directory: relative(root, path) }
  const { name, version, description, keywords, ...more } = own
  const exports = Object.fromEntries(
    Object.entries(own.exports).map(([path, target]) => [path, withRequire(name, target)]),
  )
  const files = [...new Set([...own.files, 'CHANGELOG.md', 'NOTICE'])]
  const about = { name, version, description, keywords, homepage, bugs, repository, license }
  const optional = nativeFiles[name] === undefined ? {} : { optionalDependencies: platformDependencies(name) }
  return { ...about, ...more, ...about, files, exports, ...optional }
}

/** Matches entries that packages of this family import from each other. Programs must not use them. */
export const ownUse = /^@shoal\/cli\b|\/(?:internal|public|basics|shared|common|calls)$/

/**
 * Adds to an entry the file that `require` loads (`tooling/config/commonjs.mjs`). Entries for other packages of this
 * family get one too.
 */
function withRequire(name, target) {
  if (typeof target === 'string' || name === '@shoal/cli') return target
  const { types, default: file } = target
  return { require: { types: types.replace(/ts$/, 'cts'), default: file.replace(/js$/, 'cjs') }, types, default: file }
}

function platformDependencies(name) {
  return Object.fromEntries(Object.keys(platforms).map((platform) => [`${name}-${platform}`, 'workspace:*']))
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const wanted = manifests()
  for (const [file, content] of wanted) {
    if (!existsSync(dirname(file))) mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify(content))
  }
  capture(join(root, 'node_modules', '.bin', 'biome'), ['format', '--write', ...wanted.keys()])
}
