// Fetches the pinned pnpm through npx and installs the workspace, each only if something has changed.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { cacheFolder, capture, commandEnvironment, manifest, readJson, root, run, SetupError } from './workspace.mjs'

const stampFile = join(cacheFolder, 'setup.json')

/**
 * Makes node_modules match the lockfile. Returns the folder that holds the `pnpm` command, which turbo needs on PATH.
 */
export function installWorkspace() {
  const stamp = existsSync(stampFile) ? readJson(stampFile) : {}
  const inputs = hashInputs()
  if (stamp.inputs === inputs && existsSync(join(stamp.pnpmFolder, 'pnpm'))) return stamp.pnpmFolder

  const pnpmFolder = fetchPnpm()
  say('installing the workspace packages')
  const frozen = ['install', '--frozen-lockfile', '--reporter=append-only', '--loglevel=error']
  const status = run('pnpm', frozen, { env: commandEnvironment([pnpmFolder], { CI: 'true', NODE_ENV: 'development' }) })
  if (status !== 0) throw new SetupError(`pnpm ${frozen.join(' ')} failed with status ${status}.`)
  mkdirSync(cacheFolder, { recursive: true })
  writeFileSync(stampFile, `${JSON.stringify({ inputs, pnpmFolder })}\n`)
  return pnpmFolder
}

export function say(text) {
  process.stderr.write(`shoal: ${text}\n`)
}

/** Returns one hash over everything that decides the content of node_modules. */
function hashInputs() {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch} ${manifest.packageManager}\n`)
  const files = ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', ...workspaceManifests()]
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

function workspaceManifests() {
  const native = ['ffi', 'sim'].map((name) => `packages/${name}/prebuilds`)
  return ['packages', ...native, 'packages/ffi', 'tooling', 'docs/examples'].flatMap((folder) => {
    if (!existsSync(join(root, folder))) return []
    const manifests = readdirSync(join(root, folder)).map((name) => `${folder}/${name}/package.json`)
    return manifests.filter((file) => existsSync(join(root, file))).sort()
  })
}

/** Finds the pinned pnpm: the pnpm that runs this script, or npx's copy. */
function fetchPnpm() {
  const [name, version] = manifest.packageManager.split('@')
  const find = `process.stdout.write(process.env.PATH)`
  const npx = findNpx()
  const path = capture(
    npx[0],
    [...npx.slice(1), '--yes', '--package', `${name}@${version}`, '--', 'node', '-e', find],
    {
      env: commandEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const folder = path.split(delimiter).find((entry) => existsSync(join(entry, name)))
  if (!folder) throw new SetupError(`npx fetched ${name}@${version} but put no ${name} on PATH.`)
  return folder
}

/** Finds the npx that belongs to this Node, so that a minimal PATH works too. */
function findNpx() {
  const beside = join(dirname(process.execPath), '..', 'lib', 'node_modules', 'npm', 'bin', 'npx-cli.js')
  const fromNpm = process.env.npm_execpath && join(dirname(process.env.npm_execpath), 'npx-cli.js')
  const script = [fromNpm, beside].find((file) => file && existsSync(file))
  return script ? [process.execPath, script] : ['npx']
}
