#!/usr/bin/env node
// Packs every publishable package and checks the tarballs: publint, are-the-types-wrong, their content,
// and that each installs and imports alone, in an empty project, with only the packages it names.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { installWorkspace } from './install.mjs'
import { closure, entryPoints, publishablePackages } from './publishable.mjs'
import { cacheFolder, captureBeside, commandEnvironment, root, runMain, SetupError } from './workspace.mjs'

/** What an import alone would not show: here, that the packed addon loads. */
const uses = {
  '@shoal/ffi': ["const { NativeMemory } = await import('@shoal/ffi'); NativeMemory.allocate(64).dispose()"],
}

/** The most that a raw package may have to be downloaded, in bytes. */
const sysPackageLimit = 2 ** 20

/** The newest TypeScript, and the oldest whose programs may use the declarations. */
const compilers = ['typescript', 'typescript-oldest']

const bin = (name) => join(root, 'node_modules', '.bin', name)

await runMain(async () => {
  const env = commandEnvironment([installWorkspace()])
  const packages = publishablePackages()
  const tarballs = await pack(packages, env)
  let failures = 0
  await atOnce([...packages.values()], async (one) => {
    const tarball = tarballs.get(one.name)
    const problems = [...contentProblems(tarball), ...sizeProblems(one.name, tarball)]
    if (problems.length === 0) {
      problems.push(...(await publintProblems(tarball)), ...(await typeProblems(tarball, env)))
      problems.push(...(await installProblems(one, packages, tarballs, env)))
    }
    failures += problems.length > 0 ? 1 : 0
    const size = `${Math.ceil(bytesOf(tarball) / 1024)} KiB packed`
    process.stdout.write(`${problems.length > 0 ? 'FAILED' : 'passed'}  ${one.name}, ${size}\n`)
    for (const problem of problems) process.stdout.write(`${problem.replace(/^/gm, '        ')}\n`)
  })
  return failures === 0 ? 0 : 1
})

/** Does the work for each, as many at a time as there are processors. */
async function atOnce(all, work) {
  const queue = all.values()
  const lane = async () => {
    for (const one of queue) await work(one)
  }
  await Promise.all(Array.from({ length: availableParallelism() }, lane))
}

/** Packs every package into one ignored folder and returns name → tarball with its file list. */
async function pack(packages, env) {
  const folder = join(cacheFolder, 'tarballs')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const tarballs = new Map()
  await atOnce([...packages.values()], async ({ name, path }) => {
    const output = await captureBeside('pnpm', ['pack', '--json', '--pack-destination', folder], { cwd: path, env })
    const { filename, files } = JSON.parse(output.slice(output.indexOf('{')))
    tarballs.set(name, { file: filename, files: files.map((file) => file.path) })
  })
  return tarballs
}

function contentProblems({ files }) {
  const problems = []
  if (!files.includes('LICENSE')) problems.push('content: no LICENSE')
  if (!files.some((file) => file.startsWith('dist/'))) problems.push('content: nothing in dist; build first')
  const unwanted = files.filter((file) => /(^|\/)(test|node_modules|build)\/|\.tsbuildinfo$|\.o$/.test(file))
  if (unwanted.length > 0) problems.push(`content: should not be packed: ${unwanted.join(', ')}`)
  if (files.some((file) => file.startsWith('native/')) && !files.some((file) => file.startsWith('prebuilds/'))) {
    problems.push('content: native source without a built binary; run turbo build:native')
  }
  return problems
}

function sizeProblems(name, tarball) {
  const bytes = bytesOf(tarball)
  if (!name.endsWith('-sys') || bytes <= sysPackageLimit) return []
  return [`size: ${bytes} bytes packed, above the ${sysPackageLimit} that a raw package may have`]
}

function bytesOf({ file }) {
  return statSync(file).size
}

async function publintProblems({ file }) {
  const data = readFileSync(file)
  const tarball = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength)
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true })
  const serious = messages.filter((message) => message.type !== 'suggestion')
  return serious.map((message) => `publint: ${formatMessage(message, pkg, { color: false })}`)
}

function typeProblems({ file }, env) {
  const options = ['--profile', 'esm-only', '--no-emoji', '--no-color', '--format', 'ascii']
  return failureOf('attw', () => captureBeside(bin('attw'), [file, ...options], { env }))
}

function importScript(specifier) {
  return `if (Object.keys(await import('${specifier}')).length === 0) throw new Error('${specifier} exports nothing')`
}

/** Installs the tarballs that one package needs into an empty project and imports every entry point there. */
async function installProblems(one, packages, tarballs, env) {
  const project = mkdtempSync(join(tmpdir(), 'shoal-alone-'))
  try {
    writeFileSync(join(project, 'package.json'), `${JSON.stringify({ private: true, type: 'module' })}\n`)
    const needed = [...closure(packages, one.name)].map((name) => tarballs.get(name).file)
    const install = ['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const command = [...install, ...needed]
    const installed = await failureOf('install', () => captureBeside('npm', command, { cwd: project, env }))
    if (installed.length > 0) return installed
    return [...(await consumerProblems(one, project)), ...(await runtimeProblems(one, project, env))]
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

/** Compiles a program that imports every entry point, with the packages' own declarations checked as well. */
async function consumerProblems(one, project) {
  const imports = entryPoints(one).map((specifier, index) => `export * as entry${index} from '${specifier}'`)
  writeFileSync(join(project, 'consumer.ts'), `${imports.join('\n')}\n`)
  const compilerOptions = {
    target: 'ES2022',
    module: 'NodeNext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: ['node'],
    typeRoots: [join(root, 'node_modules', '@types')],
  }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['consumer.ts'] }))
  const problems = await Promise.all(
    compilers.map((compiler) => {
      const tsc = join(root, 'node_modules', compiler, 'bin', 'tsc')
      const compile = () => captureBeside(process.execPath, [tsc, '-p', project], { cwd: project })
      return failureOf(`a strict program, compiled with ${compiler}`, compile)
    }),
  )
  return problems.flat()
}

async function runtimeProblems(one, project, env) {
  const problems = []
  for (const script of [...entryPoints(one).map(importScript), ...(uses[one.name] ?? [])]) {
    const command = ['--input-type=module', '-e', script]
    const action = () => captureBeside(process.execPath, command, { cwd: project, env })
    problems.push(...(await failureOf('in an empty project', action)))
  }
  return problems
}

async function failureOf(title, action) {
  try {
    await action()
    return []
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    return [`${title}: ${error.message}`]
  }
}
