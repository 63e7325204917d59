#!/usr/bin/env node
// `pnpm gpu:pack [--nccl FILE]`: writes everything that an offline GPU host (linux-x64) needs into the ignored folder
// .gpu. FILE is a newer libnccl for a host whose own is older. The pack keeps only its code for that host's GPU
// architecture.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from '../setup/build.mjs'
import { fetchNode } from '../setup/fetchNode.mjs'
import { installWorkspace, say } from '../setup/install.mjs'
import { cacheFolder, capture, root, runMain, SetupError } from '../setup/workspace.mjs'
import { copyPackages } from './src/copyPackages.mjs'
import { buildKernels } from './src/kernels.mjs'
import { slimLibrary } from './src/slimLibrary.mjs'

const { nccl } = parseArgs({ options: { nccl: { type: 'string' } } }).values
const nodeMajor = '24'
/** The architecture of an H200. */
const architecture = 90
const limit = 52 * 2 ** 20
const finished = join(root, '.gpu')
// The pack is built elsewhere and moved at the end, so .gpu is always complete.
const target = join(cacheFolder, `gpu-${process.pid}`)
const app = join(target, 'app')
const source = join(root, 'tooling', 'gpu')
const examples = [
  'all-reduce',
  'growable-tensor',
  'shared-memory',
  'multicast',
  'node-and-python',
  'data-parallel-training',
  'gpt',
  'elastic-recovery',
  'nvshmem-ring',
]
const entries = [
  'tooling/conformance',
  'tooling/bench',
  'tooling/sweep',
  'tooling/interop',
  'tooling/kernels',
  ...examples.map((name) => `docs/examples/${name}`),
]

await runMain(() => {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new SetupError('The native parts are built here and run there, so pack on linux-x64.')
  }
  build(installWorkspace())
  mkdirSync(join(app, 'kernels'), { recursive: true })
  try {
    return pack()
  } finally {
    rmSync(target, { recursive: true, force: true })
  }
})

function pack() {
  const node = packNode()
  const packages = copyPackages(entries, join(app, 'node_modules'))
  cpSync(join(source, 'host'), app, { recursive: true })
  copyFileSync(join(app, 'run.sh'), join(target, 'run.sh'))
  rmSync(join(app, 'run.sh'))
  chmodSync(join(target, 'run.sh'), 0o755)
  packKernels()
  packInstructions()
  if (nccl !== undefined) packNccl()
  cpSync(join(root, 'tooling', 'bindgen', 'spec'), join(app, 'spec'), { recursive: true })
  writeFileSync(join(app, 'package.json'), `${JSON.stringify({ private: true, type: 'module' })}\n`)
  const about = { ...commit(), node, packages }
  writeFileSync(join(app, 'about.json'), `${JSON.stringify(about, null, 2)}\n`)
  capture('tar', ['-C', target, '-cf', `${app}.tar`, 'app'])
  capture('xz', ['-T0', `${app}.tar`])
  rmSync(app, { recursive: true })
  const bytes = sizeOf(target)
  const mebibytes = (bytes / 2 ** 20).toFixed(1)
  if (bytes > limit) throw new SetupError(`.gpu has ${mebibytes} MiB, above the ${limit / 2 ** 20} MiB that travel.`)
  rmSync(finished, { recursive: true, force: true })
  renameSync(target, finished)
  say(
    `packed ${packages.length} packages, Node ${node}: .gpu (${mebibytes} MiB). There: bash .gpu/run.sh FOLDER [JOB …]`,
  )
  return 0
}

/** Strips and compresses Node. This takes a minute, so the result is kept. */
function packNode() {
  const { executable, version } = fetchNode(nodeMajor)
  const compressed = join(cacheFolder, `node-${version}.xz`)
  if (!existsSync(compressed)) {
    const stripped = join(target, 'node')
    capture('strip', ['-s', '-o', stripped, executable])
    capture('xz', ['-9e', '-T0', stripped])
    renameSync(`${stripped}.xz`, compressed)
  }
  copyFileSync(compressed, join(target, 'node.xz'))
  return version
}

function packNccl() {
  const slim = join(target, 'libnccl.so.2')
  const { library, kept } = slimLibrary(readFileSync(nccl), architecture)
  writeFileSync(slim, library)
  capture('xz', ['-9', '-T0', slim])
  say(`packed libnccl with ${(kept / 2 ** 20).toFixed(1)} MiB of GPU code, for sm_${architecture}`)
}

/** Packs the software device's tests of instructions, which also run on GPUs. */
function packInstructions() {
  const native = join(root, 'packages', 'sim', 'native')
  const [test, include] = ['test', 'include'].map((name) => join(app, 'instructions', name))
  mkdirSync(test, { recursive: true })
  for (const name of readdirSync(join(native, 'test'))) {
    // Broken PTX must not be given to a compiler that other users share.
    if (/^(?:ptx_|check\.h$)/.test(name) && !/hostile/.test(name))
      copyFileSync(join(native, 'test', name), join(test, name))
  }
  cpSync(join(native, 'include'), include, { recursive: true })
}

/** Packs the kernels. The host compiles them itself if this machine has no nvcc. */
function packKernels() {
  const kernels = join(source, 'kernels')
  for (const file of readdirSync(kernels)) copyFileSync(join(kernels, file), join(app, 'kernels', file))
  if (spawnSync('nvcc', ['--version']).error) say('no nvcc here: the host must have one to build the kernels')
  else buildKernels(kernels, join(app, 'kernels'))
}

/** Returns the commit that the results are made from. A folder without git has no commit. */
function commit() {
  const git = (...gitArguments) => spawnSync('git', gitArguments, { cwd: root, encoding: 'utf8' })
  const head = git('rev-parse', 'HEAD')
  if (head.error || head.status !== 0) return { commit: null, modified: null }
  // Tests of packages are not packed.
  const changes = git('status', '--porcelain', '--', ':/', ':(top,exclude)packages/*/test/*').stdout.trim()
  return { commit: head.stdout.trim(), modified: changes !== '' }
}

function sizeOf(folder) {
  const found = readdirSync(folder, { withFileTypes: true, recursive: true })
  return found.reduce((sum, entry) => sum + (entry.isFile() ? statSync(join(entry.parentPath, entry.name)).size : 0), 0)
}
