// Shared by the rehearsals of an install: publishes the packages to a registry on this machine, and has the program
// that checks them.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { installWorkspace } from './install.mjs'
import { packAll, requireAllBuilt } from './pack.mjs'
import { publishAll } from './publish.mjs'
import { startRegistry } from './registry.mjs'
import { commandEnvironment, SetupError } from './workspace.mjs'

/** The packages that are installed. */
export const wanted = ['@shoal/driver', '@shoal/nccl', '@shoal/sim']
/** The program that checks the packages. It prints `sum 3`. */
export const program = `import { Device, DeviceBuffer } from '@shoal/driver'
import { Communicator, group } from '@shoal/nccl'
const devices = Device.all()
const ranks = await Communicator.initAll(devices)
const buffers = devices.map((device) => DeviceBuffer.from(device, new Float32Array(1000).fill(device.ordinal + 1)))
const streams = devices.map((device) => device.createStream())
group(() => ranks.forEach((rank, i) => rank.allReduce(buffers[i], buffers[i], { stream: streams[i] })))
await Promise.all(ranks.map((rank, i) => rank.synchronize(streams[i])))
console.log('sum', (await buffers[1].toArray())[999])
await Promise.all(ranks.map((rank) => rank.destroy()))
`

/** Returns the program as a test. @param head - the import of `test` */
export function testProgram(head) {
  const [imports, body] = [program.match(/^import .*$/gm), program.replaceAll(/^import .*\n/gm, '')]
  const checked = body.replace(/^console\.log\('sum', (.*)\)$/m, "if ($1 !== 3) throw new Error('a wrong sum')")
  return `${[head, ...imports].join('\n')}\ntest('sum', async () => {\n${checked}})\n`
}

/** Returns the same test in CommonJS. */
export function testInCommonJS(head) {
  return testProgram(head).replaceAll(/^import (.*) from (.*)$/gm, 'const $1 = require($2)')
}

/**
 * Tries the entries that the command line names, or all of them. `attempt(entry, registry, env)` returns version and
 * problem.
 */
export async function rehearse(entries, attempt) {
  const chosen = process.argv.slice(2)
  const unknown = chosen.filter((name) => entries[name] === undefined)
  if (unknown.length > 0)
    throw new SetupError(`There is no ${unknown.join(', ')}: there are ${Object.keys(entries).join(', ')}.`)
  const pnpmFolder = installWorkspace()
  build(pnpmFolder)
  // Some managers also read the manifests of other platforms' packages.
  requireAllBuilt()
  const env = commandEnvironment([pnpmFolder])
  const registry = await startRegistry()
  let failures = 0
  try {
    await publishAll(await packAll(env), registry.url, { ...env, ...registry.publisher })
    for (const name of chosen.length > 0 ? chosen : Object.keys(entries)) {
      const started = performance.now()
      const { version, problem } = await attempt(entries[name], registry, env)
      failures += problem === undefined ? 0 : 1
      const seconds = ((performance.now() - started) / 1000).toFixed(1)
      process.stdout.write(`${problem === undefined ? 'passed' : 'FAILED'}  ${name} ${version}, ${seconds} s\n`)
      if (problem !== undefined) process.stdout.write(`${problem.replace(/^/gm, '        ')}\n`)
    }
  } finally {
    registry.close()
  }
  return failures === 0 ? 0 : 1
}

/** Writes an empty project that installs from the registry, with the program. */
export function writeProject(project, registry, more = {}) {
  const manifest = `${JSON.stringify({ private: true, type: 'module' })}\n`
  const files = { 'package.json': manifest, '.npmrc': registry.npmrc, 'program.mjs': program, ...more }
  for (const [file, text] of Object.entries(files)) writeFileSync(join(project, file), text)
}

/** @throws SetupError if the program printed something else than expected */
export function checkPrinted(printed) {
  if (printed !== 'sum 3\n') throw new SetupError(`The program printed ${printed}`)
}

/**
 * Gives the package managers caches of their own. A rehearsal must not change the user's caches, or reuse an earlier
 * rehearsal's.
 */
export function ownCaches(project) {
  const names = ['npm_config_cache', 'npm_config_store_dir', 'npm_config_cache_dir', 'XDG_CACHE_HOME', 'XDG_DATA_HOME']
  const others = ['YARN_CACHE_FOLDER', 'YARN_GLOBAL_FOLDER', 'BUN_INSTALL_CACHE_DIR', 'DENO_DIR']
  return Object.fromEntries([...names, ...others].map((name) => [name, join(project, '.caches', name)]))
}
