// Packs the tarballs of all packages, as they are published.
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { publishDeclarations } from './publicDeclarations.mjs'
import { publishablePackages } from './publishable.mjs'
import { cacheFolder, captureBeside, root, SetupError } from './workspace.mjs'

export const tarballFolder = join(cacheFolder, 'tarballs')

/** Returns the native files that a platform package needs and that are not built yet. */
export function missingFiles({ path, manifest }) {
  if (manifest.os === undefined) return []
  return manifest.files.filter((file) => /\.(node|so\.\d+)$/.test(file) && !existsSync(join(path, file)))
}

/** Throws an error with the needed steps if a platform package has no native files. */
export function requireAllBuilt() {
  const missing = [...publishablePackages().values()].filter((one) => missingFiles(one).length > 0)
  if (missing.length === 0) return
  const names = missing.map(({ name }) => name).join(', ')
  throw new SetupError(
    `Not built here: ${names}. pnpm build:platforms builds them, where there are compilers for them.`,
  )
}

/**
 * Packs every package, except platform packages that were not built here. Returns name → tarball with its file list.
 */
export async function packAll(env) {
  rmSync(tarballFolder, { recursive: true, force: true })
  mkdirSync(tarballFolder, { recursive: true })
  const packages = [...publishablePackages().values()].filter((one) => missingFiles(one).length === 0)
  for (const { path } of packages) copyFileSync(join(root, 'NOTICE'), join(path, 'NOTICE'))
  const only = packages.map(({ name }) => `--filter=${name}`)
  const command = ['--recursive', ...only, 'pack', '--json', '--pack-destination', tarballFolder]
  const output = await captureBeside('pnpm', command, { env })
  const packed = JSON.parse(output.slice(output.indexOf('[')))
  for (const { filename } of packed) publishDeclarations(filename)
  return new Map(
    packed.map(({ name, filename, files }) => [name, { file: filename, files: files.map(({ path }) => path) }]),
  )
}
