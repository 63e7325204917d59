#!/usr/bin/env node
// Packs every publishable package and checks the tarballs with publint, are-the-types-wrong and checks of their
// content. Then publishes them to a registry on this machine. Each package must install, import and work alone in an
// empty project. The page for beginners must work with these packages.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import ts from 'typescript-api'
import { build } from './build.mjs'
import { gettingStartedProblems } from './gettingStarted.mjs'
import { installWorkspace } from './install.mjs'
import { ownUse } from './manifests.mjs'
import { missingFiles, packAll } from './pack.mjs'
import { publishAll } from './publish.mjs'
import { entryPoints, publishablePackages } from './publishable.mjs'
import { startRegistry } from './registry.mjs'
import { captureBeside, commandEnvironment, offline, readJson, root, runMain, SetupError } from './workspace.mjs'

/** A real call of each package on the software device, because an import alone proves little. Each returns true. */
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
  '@shoal/cublas-sys': `const { cublas, cublasCreate } = await import('@shoal/cublas-sys')
    if (cublas.has('cublasCreate_v2')) return true
    try { cublasCreate(new BigUint64Array(1)) } catch (error) { return error.name === 'LibraryNotFoundError' }`,
  '@shoal/nvrtc-sys': `const { nvrtc } = await import('@shoal/nvrtc-sys')
    return nvrtc.has('nvrtcVersion') || nvrtc.trace.length > 0`,
  '@shoal/nvjitlink-sys': `const { nvjitlink } = await import('@shoal/nvjitlink-sys')
    return nvjitlink.has('nvJitLinkCreate') || nvjitlink.trace.length > 0`,
  '@shoal/nvml-sys': `const { nvmlInit } = await import('@shoal/nvml-sys')
    try { return nvmlInit() < 0 } catch (error) { return error.name === 'LibraryNotFoundError' }`,
  '@shoal/nvrtc': `const { Program } = await import('@shoal/nvrtc')
    const outcome = await new Program('extern "C" __global__ void k() {}').compile({ cache: false }).catch((error) => error)
    return outcome.name === 'LibraryNotFoundError' || outcome.ptx.includes('k')`,
  '@shoal/nvjitlink': `const { Linker } = await import('@shoal/nvjitlink')
    const outcome = await new Linker({ architecture: 'sm_90' }).link().catch((error) => error)
    return ['LibraryNotFoundError', 'RangeError'].includes(outcome.name)`,
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

/**
 * Programs that must compile: a variable for an array made by the program must also accept an array read from a device.
 */
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

/** The largest download of a raw package, in bytes. */
const sysPackageLimit = 2 ** 20

/** The limits of `npm install @shoal/driver`: packages, and bytes of their files. No package may have a script. */
const driverLimit = { packages: 8, bytes: 2_500_000 }

await runMain(async () => {
  const pnpmFolder = installWorkspace()
  // The demo builds only some packages, and other packages may have changed since their last build.
  build(pnpmFolder)
  const env = commandEnvironment([pnpmFolder])
  const packages = publishablePackages()
  const tarballs = await packAll(env)
  const registry = await startRegistry()
  let failures = 0
  const report = (title, problems) => {
    failures += problems.length > 0 ? 1 : 0
    process.stdout.write(`${problems.length > 0 ? 'FAILED' : 'passed'}  ${title}\n`)
    for (const problem of problems) process.stdout.write(`${problem.replace(/^/gm, '        ')}\n`)
  }
  try {
    report('publishing to a registry', await publishProblems(tarballs, registry, env))
    const checkOne = async (one) => {
      const tarball = tarballs.get(one.name)
      if (tarball === undefined) {
        process.stdout.write(`skipped ${one.name}: not built here, ${missingFiles(one).join(', ')}\n`)
        return
      }
      const problems = [
        ...contentProblems(one, tarball),
        ...sizeProblems(one.name, tarball),
        ...internalProblems(tarball),
      ]
      problems.push(...(await publintProblems(tarball)))
      if (entryPoints(one).length > 0) {
        problems.push(...(await typeProblems(one, tarball)), ...(await installProblems(one, registry, env)))
      }
      report(`${one.name}, ${Math.ceil(bytesOf(tarball) / 1024)} KiB packed`, problems)
    }
    // The longest job starts first.
    await atOnce([
      async () =>
        report(
          'all of them with the oldest TypeScript and the newest',
          await allTypesProblems(packages, registry, env),
        ),
      async () => report('getting started', await gettingStartedProblems(registry, env)),
      ...[...packages.values()].map((one) => () => checkOne(one)),
    ])
  } finally {
    registry.close()
  }
  return failures === 0 ? 0 : 1
})

/** The publish command must publish all packages. Its second run must find all of them published. */
async function publishProblems(tarballs, registry, env) {
  return await failureOf('publish', async () => {
    const published = await publishAll(tarballs, registry.url, { ...env, ...registry.publisher })
    const again = await publishAll(tarballs, registry.url, env)
    if (published.length !== tarballs.size || again.length > 0 || registry.names().length !== tarballs.size)
      throw new SetupError(`${published.length} of ${tarballs.size} were published, then ${again.length} once more`)
  })
}

/** Runs the jobs, as many at a time as there are processors. */
async function atOnce(jobs) {
  const queue = jobs.values()
  const lane = async () => {
    for (const job of queue) await job()
  }
  await Promise.all(Array.from({ length: availableParallelism() }, lane))
}

function contentProblems({ path, manifest }, { files }) {
  const problems = ['LICENSE', 'NOTICE', ...readdirSync(path).filter((name) => name === 'CHANGELOG.md')]
    .filter((name) => !files.includes(name))
    .map((name) => `content: no ${name}`)
  if (entryPoints({ manifest }).length > 0 && !files.some((file) => file.startsWith('dist/')))
    problems.push('content: nothing in dist; build first')
  const unwanted = files.filter((file) => /(^|\/)(test|node_modules|build|prebuilds)\/|\.tsbuildinfo$|\.o$/.test(file))
  if (unwanted.length > 0) problems.push(`content: should not be packed: ${unwanted.join(', ')}`)
  const scripts = Object.keys(manifest.scripts ?? {}).filter((name) => /^(pre|post)?(install|prepare)$/.test(name))
  if (scripts.length > 0) problems.push(`content: runs scripts when it is installed: ${scripts.join(', ')}`)
  return problems
}

function sizeProblems(name, tarball) {
  const bytes = bytesOf(tarball)
  if (!name.endsWith('-sys') || bytes <= sysPackageLimit) return []
  return [`size: ${bytes} bytes packed, above the ${sysPackageLimit} that a raw package may have`]
}

/** Reports declarations that show internal members. */
function internalProblems({ file }) {
  const tarball = createPackageFromTarballData(new Uint8Array(readFileSync(file)))
  const declarations = tarball.listFiles().filter((each) => /\.d\.[cm]?ts$/.test(each))
  return declarations
    .filter((each) => tarball.readFile(each).includes('@internal'))
    .map((each) => `content: ${each} has @internal, which publicDeclarations.mjs did not find at a member or an export`)
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

/** Returns the problems that are-the-types-wrong finds, for every module resolution that knows `exports`. */
async function typeProblems({ name, manifest }, { file }) {
  // Programs must not use the entries that packages have for each other.
  const excludeEntrypoints = Object.keys(manifest.exports).filter((path) => ownUse.test(join(name, path)))
  const tarball = createPackageFromTarballData(new Uint8Array(readFileSync(file)))
  const { types, problems } = await checkPackage(tarball, { excludeEntrypoints })
  if (!types) return ['attw: no types']
  return problems
    .filter(({ resolutionKind }) => resolutionKind !== 'node10')
    .map((problem) => `attw: ${JSON.stringify(problem)}`)
}

function importScript(specifier) {
  return `if (Object.keys(await import('${specifier}')).length === 0) throw new Error('${specifier} exports nothing')`
}

/** Installs one package into an empty project and imports every entry point there. */
async function installProblems(one, registry, env) {
  return await inProject(registry, [one.name], env, async (project) => [
    ...(one.name === '@shoal/driver' ? weightProblems(project) : []),
    ...(await consumerProblems([one], project, 'typescript')),
    ...(await runtimeProblems(one, project, env)),
  ])
}

/**
 * Compiles against all declarations together: with the oldest supported TypeScript, with the last one written in
 * JavaScript and with the newest, each in its module resolutions. The newest has already checked each package alone.
 */
async function allTypesProblems(packages, registry, env) {
  const all = [...packages.values()].filter((one) => entryPoints(one).length > 0)
  const names = all.map(({ name }) => name)
  return await inProject(registry, names, env, async (project) => {
    const problems = []
    const bundler = { module: 'ESNext', moduleResolution: 'Bundler' }
    // By default the declarations of browsers are loaded too, so ours must work next to them.
    const byDefault = { module: 'NodeNext', lib: undefined }
    for (const [compiler, settings] of [
      ['typescript-oldest', byDefault],
      ['typescript-oldest', bundler],
      ['typescript-api', { module: 'NodeNext' }],
      ['typescript', byDefault],
      ['typescript', { module: 'Node16' }],
      ['typescript', bundler],
    ]) {
      problems.push(...(await consumerProblems(all, project, compiler, settings)))
    }
    return problems
  })
}

async function inProject(registry, names, env, check) {
  const project = mkdtempSync(join(tmpdir(), 'shoal-alone-'))
  try {
    writeFileSync(join(project, 'package.json'), `${JSON.stringify({ private: true, type: 'module' })}\n`)
    writeFileSync(join(project, '.npmrc'), registry.npmrc)
    // Installs the software device too, because the calls need it and no package depends on it.
    const options = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
    const command = ['install', ...options, ...new Set([...names, '@shoal/sim'])]
    const installed = await failureOf('install', () => captureBeside('npm', command, { cwd: project, env }))
    return installed.length > 0 ? installed : await check(project)
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

/** Reports if the driver installs more than its limits allow, or runs a script. The software device does not count. */
function weightProblems(project) {
  const lock = readJson(join(project, 'package-lock.json')).packages
  const brought = Object.keys(lock).filter((path) => existsSync(join(project, path, 'package.json')))
  const names = brought.filter((path) => path !== '' && !path.includes('/@shoal/sim'))
  const files = names.flatMap((name) => readdirSync(join(project, name), { recursive: true, withFileTypes: true }))
  const kinds = new Map()
  for (const file of files.filter((each) => each.isFile())) {
    const [, kind = file.name] = /(\.d\.[cm]?ts|\.\w+)$/.exec(file.name) ?? []
    kinds.set(kind, (kinds.get(kind) ?? 0) + statSync(join(file.parentPath, file.name)).size)
  }
  const bytes = [...kinds.values()].reduce((sum, size) => sum + size, 0)
  const sorted = [...kinds].sort(([, one], [, other]) => other - one)
  const list = sorted.map(([kind, size]) => `${kind} ${size}`).join(', ')
  const told = `${names.length} packages of ${bytes} bytes: ${list}`
  process.stdout.write(`        npm install @shoal/driver brings ${told}\n`)
  const scripts = names.filter((name) => lock[name].hasInstallScript === true)
  return [
    ...(names.length <= driverLimit.packages && bytes <= driverLimit.bytes
      ? []
      : [`weight: ${told}, above ${JSON.stringify(driverLimit)}: ${names.join(', ')}`]),
    ...scripts.map((name) => `weight: ${name} runs a script when it is installed`),
  ]
}

/** Compiles a program that imports every entry point, and checks the packages' own declarations too. */
async function consumerProblems(packages, project, compiler, settings = { module: 'NodeNext' }) {
  const imports = packages.flatMap(entryPoints).map((specifier, i) => `export * as entry${i} from '${specifier}'`)
  writeFileSync(join(project, 'consumer.ts'), `${imports.join('\n')}\n`)
  // Checks CommonJS imports too, by names and as a whole, without the entries that programs must not use.
  const required = imports.filter((line) => !ownUse.test(/'(.*)'/.exec(line)[1]))
  const whole = required.map((line) =>
    line.replace(/export \* as (\w+) from (.*)/, 'export import $1AsAWhole = require($2)'),
  )
  writeFileSync(join(project, 'required.cts'), `${[...required, ...whole].join('\n')}\n`)
  for (const [i, { name }] of packages.entries()) {
    if (programs[name] !== undefined) writeFileSync(join(project, `program${i}.ts`), programs[name])
  }
  const compilerOptions = {
    target: 'ES2022',
    lib: ['ES2022'],
    ...settings,
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: ['node'],
    typeRoots: [join(root, 'node_modules', '@types')],
  }
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['*.ts', ...(settings.moduleResolution ? [] : ['*.cts'])] }),
  )
  const tsc = join(root, 'node_modules', compiler, 'bin', 'tsc')
  const compile = () =>
    captureBeside(process.execPath, [tsc, '-p', project], { cwd: project, env: offline(process.env) })
  return await failureOf(`a strict program, compiled with ${compiler} and ${JSON.stringify(settings)}`, compile)
}

/** Imports every entry point, also with `require`, reads the package's manifest, and makes a call. */
async function runtimeProblems(one, project, env) {
  // Node.js 20 does not know `using`.
  const { outputText } = ts.transpileModule(`async function use() {\n${uses[one.name]}\n}`, {
    compilerOptions: { target: 'ES2022' },
  })
  const use = `${outputText}\nif ((await use()) !== true) throw new Error('the call does not do what it has to')`
  const manifest = `import { createRequire } from 'node:module'
    const require = createRequire('${project}/')
    if (require('${one.name}/package.json').name !== '${one.name}') throw new Error('no manifest')
    for (const entry of ${JSON.stringify(entryPoints(one))}) if (require(entry) !== (await import(entry))) throw new Error(entry)`
  const problems = []
  for (const script of [...entryPoints(one).map(importScript), manifest, use]) {
    const command = ['--input-type=module', '-e', script]
    const action = () => captureBeside(process.execPath, command, { cwd: project, env: withoutLibraries(env) })
    problems.push(...(await failureOf('in an empty project', action)))
  }
  return problems
}

/** Returns an environment that uses the software device even if real libraries are installed. */
function withoutLibraries(env) {
  const others = Object.entries(offline(env)).filter(([name]) => !/^SHOAL_/.test(name))
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
