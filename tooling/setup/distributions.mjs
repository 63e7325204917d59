#!/usr/bin/env node
// `pnpm test:distributions [NAME …]`: installs the packed packages with npm on other Linux distributions, and runs a
// program on the software device there. debootstrap creates each distribution as a folder. Needs root, debootstrap, and
// an emulator for 64-bit Arm.
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fetchNode } from './fetchNode.mjs'
import { fetchTools } from './fetchTools.mjs'
import { checkPrinted, ownCaches, rehearse, wanted, writeProject } from './rehearsal.mjs'
import { cacheFolder, capture, captureBeside, runMain, SetupError } from './workspace.mjs'

// Debian's debootstrap knows neither Ubuntu's mirror nor its newer releases. One script sets up all Ubuntu releases.
const ubuntu = ['http://archive.ubuntu.com/ubuntu', 'gutsy']

/**
 * The distributions: debootstrap's suite name, its further arguments, and the processor if it is not this machine's.
 */
const distributions = {
  'debian 11': { suite: 'bullseye' },
  'debian 12': { suite: 'bookworm' },
  'ubuntu 22.04': { suite: 'jammy', more: ubuntu },
  'ubuntu 24.04': { suite: 'noble', more: ubuntu },
  'debian 12 on arm64': { suite: 'bookworm', arch: 'arm64', emulator: '/usr/bin/qemu-aarch64-static' },
}

await runMain(() => {
  if (process.getuid() !== 0) throw new SetupError('Only root may run debootstrap and change the root folder.')
  return rehearse(distributions, tryDistribution)
})

async function tryDistribution({ suite, more = [], arch = process.arch, emulator }, registry, env) {
  let project
  try {
    const tree = treeOf(suite, more, arch, emulator)
    project = mkdtempSync(join(tree, 'opt', 'project-'))
    writeProject(project, registry)
    const inside = `/opt/${basename(project)}`
    const node = emulator === undefined ? ['/opt/node'] : ['/opt/emulator', '/opt/node']
    // The mounts end with the namespace.
    const enter = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
    const { PATH: _, ...others } = env
    const own = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: inside, SHOAL_DEVICE: 'sim', ...ownCaches(inside) }
    const start = (...words) =>
      captureBeside('unshare', ['--mount', 'sh', '-c', enter, tree, ...node, ...words], {
        env: { ...others, ...own },
        timeout: 1_800_000,
      })
    await start('/opt/npm/node_modules/npm/bin/npm-cli.js', 'install', '--prefix', inside, ...wanted)
    checkPrinted(await start(`${inside}/program.mjs`))
    return {
      version: (
        await start('-p', 'process.version + ", glibc " + process.report.getReport().header.glibcVersionRuntime')
      ).trim(),
    }
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    return { version: '', problem: error.message }
  } finally {
    if (project !== undefined) rmSync(project, { recursive: true, force: true })
  }
}

/** Returns a folder with the distribution's files, and Node and npm in `/opt`. The folder is made once. */
function treeOf(suite, more, arch, emulator) {
  const tree = join(cacheFolder, 'distributions', `${suite}-${arch}`)
  if (!existsSync(tree)) {
    const unfinished = `${tree}.unfinished`
    rmSync(unfinished, { recursive: true, force: true })
    mkdirSync(unfinished, { recursive: true })
    // A distribution for another processor is not fully set up, but this suffices to run programs.
    const foreign = emulator === undefined ? [] : ['--foreign', `--arch=${arch}`]
    capture('debootstrap', [...foreign, '--variant=minbase', suite, unfinished, ...more])
    renameSync(unfinished, tree)
  }
  mkdirSync(join(tree, 'opt'), { recursive: true })
  const npm = join(tree, 'opt', 'npm')
  if (!existsSync(npm)) capture('cp', ['-r', fetchTools('npm', { npm: '11' }), npm])
  copyFileSync(fetchNode('22', { platform: 'linux', arch }).executable, join(tree, 'opt', 'node'))
  if (emulator !== undefined) copyFileSync(emulator, join(tree, 'opt', 'emulator'))
  return tree
}
