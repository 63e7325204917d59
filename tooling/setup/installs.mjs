#!/usr/bin/env node
// `pnpm test:installs [NAME …]`: installs the packed packages with every package manager, each into an empty project,
// from a registry on this machine. It then runs a program on the software device. An install fails the check if it
// exits with another status than 0, asks a question, or needs a script. Test runners are tried the same way.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fetchNode } from './fetchNode.mjs'
import { fetchTools } from './fetchTools.mjs'
import { platforms } from './manifests.mjs'
import { checkPrinted, ownCaches, rehearse, testInCommonJS, testProgram, wanted, writeProject } from './rehearsal.mjs'
import { captureBeside, root, runMain, SetupError } from './workspace.mjs'

const bunPackage = `@oven/bun-linux-${process.arch === 'arm64' ? 'aarch64' : process.arch}`
const denoPackage = `@deno/linux-${process.arch}-glibc`
const onNode = (file) => [process.execPath, tool(file)]
const berry = (linker, url) => ({
  'yarn.lock': '',
  '.yarnrc.yml': [
    `nodeLinker: ${linker}`,
    'enableTelemetry: false',
    'unsafeHttpWhitelist: ["127.0.0.1"]',
    `npmScopes: { shoal: { npmRegistryServer: "${url}" } }`,
  ].join('\n'),
})

/**
 * The package managers: the package of each one (`from`), its command, its arguments to install, the steps after that,
 * and the command that runs the program.
 */
const managers = {
  npm: { command: () => ['npm'], add: ['install'] },
  'npm without scripts': { command: () => ['npm'], add: ['install', '--ignore-scripts'] },
  'pnpm 10': { from: 'pnpm@10', command: () => onNode('pnpm 10/bin/pnpm.cjs'), add: ['add'] },
  // pnpm 11 does not start on Node 20.
  'pnpm 11': {
    from: 'pnpm@11',
    command: () => [fetchNode('22').executable, tool('pnpm 11/bin/pnpm.mjs')],
    add: ['add'],
  },
  'pnpm 12': { from: 'pnpm@12', command: () => onNode('pnpm 12/bin/pnpm.mjs'), add: ['add'] },
  'yarn 1': { from: 'yarn@1.22.22', command: () => onNode('yarn 1/bin/yarn.js'), add: ['add'] },
  'yarn 4': {
    from: '@yarnpkg/cli-dist@4',
    command: () => onNode('yarn 4/bin/yarn.js'),
    add: ['add'],
    files: (url) => berry('node-modules', url),
  },
  'yarn 4 PnP': {
    from: '@yarnpkg/cli-dist@4',
    command: () => onNode('yarn 4 PnP/bin/yarn.js'),
    add: ['add'],
    files: (url) => berry('pnp', url),
    program: (command) => [...command, 'node', 'program.mjs'],
  },
  bun: {
    from: `${bunPackage}@1`,
    command: () => [tool('bun/bin/bun')],
    add: ['add'],
    program: (command) => [...command, 'program.mjs'],
  },
  deno: {
    from: `${denoPackage}@2`,
    command: () => [tool('deno/deno')],
    add: ['add', '--npm'],
    program: (command) => [...command, 'run', '--allow-all', 'program.mjs'],
  },
  // Builds the native files in place, because the optional native packages are not installed.
  source: {
    command: () => ['npm'],
    add: ['install', '--omit=optional', '@shoal/ffi-source', 'node-addon-api', 'node-api-headers'],
    build: ['ffi-source', 'sim/native'].map((name) => ['make', '-s', '-j', '2', '-C', `node_modules/@shoal/${name}`]),
  },
}

const node = process.execPath

/** The test for Jest in the guide to testing. */
const testInGuide = () =>
  /^```js\n([\s\S]*?)^```/m.exec(readFileSync(join(root, 'docs/guides/testing-your-project.md'), 'utf8'))[1]

/** The test runners: package, command and test file. Jest and mocha get the test in CommonJS, their default. */
const runners = {
  jest: {
    with: ['jest@30'],
    program: () => [node, 'node_modules/jest/bin/jest.js', '--testMatch', '**/*.test.cjs'],
    files: () => ({ 'sum.test.cjs': testInCommonJS(''), 'guide.test.cjs': testInGuide() }),
  },
  mocha: {
    with: ['mocha@11'],
    program: () => [node, 'node_modules/mocha/bin/mocha.js', 'sum.test.cjs'],
    files: () => ({ 'sum.test.cjs': testInCommonJS('const test = it') }),
  },
  'node:test': {
    program: () => [node, '--test', 'sum.test.cjs'],
    files: () => ({ 'sum.test.cjs': testInCommonJS("const { test } = require('node:test')") }),
  },
  vitest: {
    with: ['vitest@4'],
    program: () => [node, 'node_modules/vitest/vitest.mjs', 'run'],
    files: () => ({ 'sum.test.mjs': testProgram("import { test } from 'vitest'") }),
  },
}
for (const [name, runner] of Object.entries(runners)) {
  managers[name] = { command: () => ['npm'], add: ['install', ...(runner.with ?? [])], ...runner, isTest: true }
}

await runMain(() => rehearse(managers, tryManager))

async function tryManager(manager, registry, env) {
  const project = mkdtempSync(join(tmpdir(), 'shoal-installed-'))
  let version = ''
  try {
    writeProject(project, registry, manager.files?.(registry.url))
    const [command, ...first] = manager.command()
    // Runs without CI, like in a terminal of a user who answers no questions. CI makes some managers stricter and
    // quieter.
    const { CI: _, NODE_PATH: __, ...quiet } = env
    const options = { cwd: project, env: { ...quiet, ...ownCaches(project), SHOAL_DEVICE: 'sim' }, timeout: 1_800_000 }
    version = (await captureBeside(command, [...first, '--version'], options)).trim().split('\n')[0]
    const added = await captureBeside(command, [...first, ...manager.add, ...wanted], options)
    if (/build script|postinstall|approve-builds/i.test(added)) throw new SetupError(`It speaks of scripts:\n${added}`)
    for (const [tool, ...toolArguments] of manager.build ?? []) await captureBeside(tool, toolArguments, options)
    const others = otherPlatforms(project)
    if (others.length > 0) throw new SetupError(`It installed what is for other platforms: ${others.join(', ')}`)
    const [runner, ...runnerArguments] = manager.program?.([command, ...first]) ?? [process.execPath, 'program.mjs']
    const printed = await captureBeside(runner, runnerArguments, options)
    if (manager.isTest !== true) checkPrinted(printed)
    return { version }
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    return { version, problem: error.message }
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

/** Returns native packages in a project that do not fit this machine. */
function otherPlatforms(project) {
  const names = existsSync(join(project, 'node_modules'))
    ? readdirSync(join(project, 'node_modules'), { recursive: true })
    : []
  const foreign = Object.keys(platforms).filter((platform) => platform !== `${process.platform}-${process.arch}`)
  return names.filter((name) => foreign.some((platform) => name.endsWith(`-${platform}/package.json`)))
}

/** Returns a file of a package manager. `file` is the manager's name and a path in its package. */
function tool(file) {
  const [name, ...path] = file.split('/')
  const [, installed, version] = /^(.+)@(.+)$/.exec(managers[name].from)
  return join(
    fetchTools(`manager-${name.replaceAll(' ', '-')}`, { [installed]: version }),
    'node_modules',
    installed,
    ...path,
  )
}
