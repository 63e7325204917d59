// /usr/bin/env node `pnpm test:distributions [NAME …]`: installs the packed packages by npm on other distributions,
// each as a folder tree by debootstrap, and runs a program on the software device there. Needs root, debootstrap, and
// for 64-bit Arm its emulator.
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fetchNode } from './fetchNode.mjs'
import { fetchTools } from './fetchTools.mjs'
import { checkPrinted, ownCaches, rehearse, wanted, writeProject } from './rehearsal.mjs'
import { cacheFolder, capture, captureBeside, runMain, SetupError } from './workspace.mjs'

// debootstrap of Debian knows neither where Ubuntu lies nor its newer releases; they are all set up by one script.
const ubuntu = ['http://archive.ubuntu.com/ubuntu', 'gutsy']

/** Distributions: debootstrap's name, what else it has to be told, and the processor where it is not this one. */
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
    // The mounts go with the namespace.
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

/** The distribution's files, with Node and npm in `/opt`, made once. */
function treeOf(suite, more, arch, emulator) {
  const tree = join(cacheFolder, 'distributions', `${suite}-${arch}`)
  if (!existsSync(tree)) {
    const unfinished = `${tree}.unfinished`
    rmSync(unfinished, { recursive: true, force: true })
    mkdirSync(unfinished, { recursive: true })
    // What is not set up, since it is for another processor, is good enough to run programs.
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
