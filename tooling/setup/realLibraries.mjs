#!/usr/bin/env node
// Fetches with pip the libraries and headers that have a Python wheel (tooling/libraries). Prints the variables that
// name them, for `eval`. Reports each wheel that pip cannot fetch. Tests that need a missing library count as skipped.
// Usage: eval "$(node tooling/setup/realLibraries.mjs)"
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { libraries, versionParts } from '../libraries/index.mjs'
import { say } from './install.mjs'
import { cacheFolder, captureBeside, commandEnvironment, readJson, root, SetupError } from './workspace.mjs'

/** The most seconds for one wheel. All wheels are fetched at the same time. */
const limit = 240
const folder = join(cacheFolder, 'real-libraries')
const versionOf = (library) => readJson(join(root, 'tooling/bindgen/spec', `${library}.json`)).headerVersion

/** Each wheel once, with the version of the library's spec. Later parts of a version change no header. */
const all = libraries.flatMap(({ id, version: { format }, install: { wheel, headerWheels = [] } }) => {
  if (wheel === undefined) return []
  const version = `${versionParts(format, versionOf(id)).join('.')}.*`
  return [wheel, ...headerWheels].map((each) => `${each}==${version}`)
})
const wheels = [...new Set(all)]

const started = performance.now()
mkdirSync(folder, { recursive: true })
const missing = []
await Promise.all(
  wheels.map(async (wheel) => {
    try {
      await fetchWheel(wheel)
    } catch (error) {
      if (!(error instanceof SetupError)) throw error
      missing.push(wheel)
    }
  }),
)
addStandIns()
const seconds = ((performance.now() - started) / 1000).toFixed(0)
say(`real libraries: ${wheels.length - missing.length} of ${wheels.length} wheels are there, after ${seconds} s`)
if (missing.length > 0) say(`not to be had with pip: ${missing.join(', ')}`)
for (const [name, path] of Object.entries(variables())) {
  if (existsSync(join(folder, path))) process.stdout.write(`export ${name}='${join(folder, path)}'\n`)
}

/** Downloads a wheel and unpacks it, once. */
async function fetchWheel(wheel) {
  const done = join(folder, `${wheel.replace(/[^\w.-]+/g, '-')}.done`)
  if (existsSync(done)) return
  const download = join(folder, `${wheel.split('==')[0]}.download`)
  rmSync(download, { recursive: true, force: true })
  mkdirSync(download)
  const quiet = ['--no-deps', '--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '20']
  const pip = ['-m', 'pip', 'download', ...quiet, '--only-binary', ':all:', '--dest', download, wheel]
  const env = commandEnvironment()
  try {
    await captureBeside('python3', pip, { env, timeout: limit * 1000 })
    const [file] = readdirSync(download)
    await captureBeside('python3', ['-m', 'zipfile', '-e', join(download, file), folder], { env })
    writeFileSync(done, '')
  } finally {
    rmSync(download, { recursive: true, force: true })
  }
}

/**
 * Adds stand-ins for the profiler's two headers: four functions and an enumeration. Their wheel is missing from some
 * indexes.
 */
function addStandIns() {
  const include = join(folder, 'nvidia/cu13/include')
  if (!existsSync(include)) return
  const standIns = join(root, 'tooling/bindgen/include/profiler')
  for (const name of readdirSync(standIns)) {
    if (!existsSync(join(include, name))) copyFileSync(join(standIns, name), join(include, name))
  }
}

/** Returns the variables that name headers and libraries, each with a path below the folder. */
function variables() {
  const found = {}
  for (const { id, headers, places, version, install } of libraries) {
    const { include, home } = headers.variables
    if (home !== undefined) found[home] = headers.wheelFolder.replace(/\/include$/, '')
    if (include !== undefined) found[include] = headers.wheelFolder
    if (install.wheelFile === undefined) continue
    const major = version.format === 'cuda' ? versionParts('cuda', versionOf(id))[0] : places.linux[0].split('.so.')[1]
    found[places.environment] = install.wheelFile.replace('*', major)
  }
  return found
}
