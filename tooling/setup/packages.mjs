#!/usr/bin/env node
// Packs every publishable package and checks the tarballs: publint, are-the-types-wrong, their content,
// that each installs, imports and works alone, in an empty project, with only the packages it names, and that the page for
// beginners can be followed.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import ts from 'typescript'
import { build } from './build.mjs'
import { gettingStartedProblems } from './gettingStarted.mjs'
import { installWorkspace } from './install.mjs'
import { closure, entryPoints, publishablePackages } from './publishable.mjs'
import { cacheFolder, captureBeside, commandEnvironment, root, runMain, SetupError } from './workspace.mjs'

/** What an import alone would not show: a real call of each package, on the software device. Each leaves true. */
const uses = {
  '@shoal/types': `const { encodeF16 } = await import('@shoal/types')
    return encodeF16(1 / 3) === 0x3555`,
  '@shoal/ffi': `const { NativeMemory } = await import('@shoal/ffi')
    using memory = NativeMemory.allocate(64)
    return memory.address > 0n`,
  '@shoal/cuda-sys': `const { cuDeviceGetCount, cuInit } = await import('@shoal/cuda-sys/driver')
    const count = new Int32Array(1)
    return cuInit(0) === 0 && cuDeviceGetCount(count) === 0 && count[0] === 2`,
  '@shoal/nccl-sys': `const { ncclGetVersion } = await import('@shoal/nccl-sys')
    const version = new Int32Array(1)
    return ncclGetVersion(version) === 0 && version[0] > 20000`,
  '@shoal/nvshmem-sys': `const { nvshmem_info_get_version } = await import('@shoal/nvshmem-sys')
    const [major, minor] = [new Int32Array(1), new Int32Array(1)]
    nvshmem_info_get_version(major, minor)
    return major[0] === 1`,
  '@shoal/nvrtc-sys': `const { nvrtc } = await import('@shoal/nvrtc-sys')
    return nvrtc.has('nvrtcVersion') || nvrtc.trace.length > 0`,
  '@shoal/nvjitlink-sys': `const { nvjitlink } = await import('@shoal/nvjitlink-sys')
    return nvjitlink.has('nvJitLinkCreate') || nvjitlink.trace.length > 0`,
  '@shoal/nvrtc': `const { Program } = await import('@shoal/nvrtc')
    const outcome = await new Program('extern "C" __global__ void k() {}').compile({ cache: false }).catch((error) => error)
    return outcome.name === 'LibraryNotFoundError' || outcome.ptx.includes('k')`,
  '@shoal/nvjitlink': `const { Linker } = await import('@shoal/nvjitlink')
    const outcome = await new Linker({ architecture: 'sm_90' }).link().catch((error) => error)
    return ['LibraryNotFoundError', 'RangeError'].includes(outcome.name)`,
  '@shoal/cuda-base': `const { Device, DeviceBuffer } = await import('@shoal/cuda-base')
    using buffer = DeviceBuffer.from(Device.get(0), new Float32Array([1, 2]))
    return buffer.toArraySync().join() === '1,2'`,
  '@shoal/driver': `const { Device, DeviceBuffer } = await import('@shoal/driver')
    using buffer = DeviceBuffer.from(Device.get(1), new Float32Array([1, 2]))
    return (await buffer.toArray()).join() === '1,2'`,
  '@shoal/runtime': `const { DeviceBuffer } = await import('@shoal/runtime')
    using buffer = DeviceBuffer.from(new Float32Array([1, 2]))
    return (await buffer.toArray()).join() === '1,2'`,
  '@shoal/nccl': `const { Communicator } = await import('@shoal/nccl')
    const all = await Communicator.initAll([0, 1])
    const sizes = all.map(({ worldSize }) => worldSize)
    await Promise.all(all.map((one) => one.destroy()))
    return sizes.join() === '2,2'`,
  '@shoal/nvshmem': `const { Session, UniqueId } = await import('@shoal/nvshmem')
    const session = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
    const buffer = await session.allocate('i32', 4)
    const sum = (await buffer.toArray()).length
    await session.finalize()
    return sum === 4`,
  '@shoal/launch': `const { bootstrap } = await import('@shoal/launch')
    const job = await bootstrap()
    const shared = await job.share('one', () => Uint8Array.of(7))
    return shared.join() === '7' && job.worldSize === 1`,
  '@shoal/cli': `const { main } = await import('@shoal/cli')
    return (await main(['doctor', '--require', 'driver,runtime,nccl,nvshmem'])) === 0`,
  '@shoal/sim': `const [{ libraries, libraryFolder }, { existsSync }] = [await import('@shoal/sim'), await import('node:fs')]
    return Object.values(libraries).every((name) => existsSync(libraryFolder() + '/' + name))`,
}

/** What has to compile: an array that was made here takes one that comes from a device. */
const arrays = (name, buffer) => `import type { ${buffer} } from '${name}'
  export async function read(buffer: ${buffer}<'f32'>): Promise<Float32Array> {
    let array = new Float32Array(4)
    array = await buffer.toArray()
    return array
  }`
const programs = {
  '@shoal/driver': arrays('@shoal/driver', 'DeviceBuffer'),
  '@shoal/runtime': arrays('@shoal/runtime', 'DeviceBuffer'),
  '@shoal/nvshmem': arrays('@shoal/nvshmem', 'SymmetricBuffer'),
}

/** The most that a raw package may have to be downloaded, in bytes. */
const sysPackageLimit = 2 ** 20

/** The newest TypeScript, and the oldest whose programs may use the declarations. */
const compilers = ['typescript', 'typescript-oldest']

const bin = (name) => join(root, 'node_modules', '.bin', name)

await runMain(async () => {
  const pnpmFolder = installWorkspace()
  // The demo builds some packages, and others may have changed since they were built.
  build(pnpmFolder)
  const env = commandEnvironment([pnpmFolder])
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
  const started = performance.now()
  const problems = await gettingStartedProblems(tarballs, env)
  failures += problems.length
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  process.stdout.write(
    [problems.length > 0 ? 'FAILED' : 'passed', ` getting started, ${seconds} s`, ...problems].join(' ') + '\n',
  )
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
    // The software device too, which no package names: what is called shall answer.
    const needed = [...closure(packages, one.name).add('@shoal/sim')].map((name) => tarballs.get(name).file)
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
  writeFileSync(join(project, 'consumer.ts'), `${imports.join('\n')}\n${programs[one.name] ?? ''}\n`)
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

/** Imports every entry point, asks for the package's manifest, and makes a call. */
async function runtimeProblems(one, project, env) {
  // Node.js 20 knows no `using`.
  const { outputText } = ts.transpileModule(`async function use() {\n${uses[one.name]}\n}`, {
    compilerOptions: { target: 'ES2022' },
  })
  const use = `${outputText}\nif ((await use()) !== true) throw new Error('the call does not do what it has to')`
  const manifest = `import { createRequire } from 'node:module'
    if (createRequire('${project}/').resolve('${one.name}/package.json') === '') throw new Error('no manifest')`
  const problems = []
  for (const script of [...entryPoints(one).map(importScript), manifest, use]) {
    const command = ['--input-type=module', '-e', script]
    const action = () => captureBeside(process.execPath, command, { cwd: project, env: withoutLibraries(env) })
    problems.push(...(await failureOf('in an empty project', action)))
  }
  return problems
}

/** The software device is meant, also where there are libraries. */
function withoutLibraries(env) {
  const others = Object.entries(env).filter(([name]) => !/^SHOAL_/.test(name))
  return { ...Object.fromEntries(others), SHOAL_DEVICE: 'sim' }
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
