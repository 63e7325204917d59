#!/usr/bin/env node
// Bundles a program with the common bundlers, and runs it on other runtimes: `npm run test:bundlers [NAME …]`. A bundle
// must work next to node_modules. After it is moved away from them, it must say which file is missing, and must work
// with the file that the guide names. The tools come from npm and are not part of the workspace.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { fetchTools } from './fetchTools.mjs'
import { installWorkspace } from './install.mjs'
import { publishablePackages } from './publishable.mjs'
import { commandEnvironment, root, run, runMain, SetupError } from './workspace.mjs'

const versions = {
  '@deno/linux-x64-glibc': '2.9.6',
  '@oven/bun-linux-x64': '1.4.5',
  '@vercel/ncc': '0.45.0',
  esbuild: '0.28.2',
  rolldown: '1.2.19',
  vite: '8.3.8',
  webpack: '5.112.2',
  'webpack-cli': '7.3.1',
}

const body = `
  const device = Device.get(0)
  const buffer = DeviceBuffer.from(device, Float32Array.of(1, 2, 3))
  Communicator.initAll([0]).then(async ([communicator]) => {
    communicator.allReduce(buffer, buffer, { stream: null })
    await device.synchronize()
    console.log((await buffer.toArray()).join())
    buffer.dispose()
    await communicator.destroy()
  })`
const guarded = `try {${body}\n} catch (error) { console.log(error.name + ': ' + error.message) }\n`
const files = {
  'main.mjs': `import { Device, DeviceBuffer } from '@shoal/driver'\nimport { Communicator } from '@shoal/nccl'\n${guarded}`,
  'main.cjs': `const { Device, DeviceBuffer } = require('@shoal/driver')\nconst { Communicator } = require('@shoal/nccl')\n${guarded}`,
  'package.json': '{ "private": true }',
  // This program uses descriptors that the runtime did not open itself, and memory that a program transfers to a
  // worker.
  'sharing.mjs': `
  import { DescriptorSocket, Device, GrowableBuffer, PinnedBuffer } from '@shoal/driver'
  import { receiveMemory, sendMemory } from '@shoal/driver/sharing'
  const device = Device.get(0)
  const options = { maximumLength: 2 ** 23, stepBytes: 1, handleTypes: 'posix-fd' }
  const buffer = GrowableBuffer.reserve(device, 'u8', options)
  for (const length of [1, 2 ** 22]) buffer.resize(length)
  buffer.buffer.fillSync(5)
  const [ours, theirs] = DescriptorSocket.pair()
  const [memory] = await Promise.all([receiveMemory(theirs), sendMemory(ours, buffer)])
  const shared = memory.buffer.slice(-3).toArraySync()
  for (const one of [memory, buffer, ours, theirs]) one.dispose()

  const pinned = PinnedBuffer.allocate(device, 'u8', 4096)
  pinned.array.fill(7)
  let moved = pinned.array.slice()
  try {
    moved = new Uint8Array(structuredClone(pinned.buffer, { transfer: [pinned.buffer] }))
  } catch (error) {
    // Most runtimes refuse.
    if (error.name !== 'DataCloneError') throw error
  }
  pinned.dispose()
  const next = PinnedBuffer.allocate(device, 'u8', 4096)
  next.array.fill(9)
  moved[0] = 1
  console.log([...shared, moved.at(-1), next.array[0]].join())\n`,
}

/** The commands that bundle the program into `out/NAME/MAIN` in the project's folder. */
const bundlers = [
  ['esbuild', 'main.mjs', 'esbuild main.mjs --bundle --platform=node --format=esm --outfile=out/esbuild/main.mjs'],
  [
    'esbuild-cjs',
    'main.cjs',
    'esbuild main.mjs --bundle --platform=node --format=cjs --outfile=out/esbuild-cjs/main.cjs',
  ],
  ['rolldown', 'main.mjs', 'rolldown main.mjs --platform node --format esm --file out/rolldown/main.mjs'],
  ['rolldown-cjs', 'main.cjs', 'rolldown main.mjs --platform node --format cjs --file out/rolldown-cjs/main.cjs'],
  ['vite', 'main.mjs', 'vite build --ssr main.mjs --outDir out/vite --config vite.config.mjs'],
  [
    'webpack',
    'main.cjs',
    'webpack --mode production --target node20 --entry ./main.mjs -o out/webpack --output-filename main.cjs',
  ],
  [
    'webpack-cjs',
    'main.cjs',
    'webpack --mode production --target node20 --entry ./main.cjs -o out/webpack-cjs --output-filename main.cjs',
  ],
  ['ncc', 'index.mjs', 'ncc build main.mjs -o out/ncc'],
  ['ncc-cjs', 'index.cjs', 'ncc build main.cjs -o out/ncc-cjs'],
]
files['vite.config.mjs'] =
  `export default { ssr: { noExternal: true }, build: { rollupOptions: { output: { entryFileNames: 'main.mjs' } } } }\n`

/** Runtimes that run the program without bundling. */
const runtimes = [
  ['bun', '@oven/bun-linux-x64/bin/bun', []],
  ['deno', '@deno/linux-x64-glibc/deno', ['run', '--allow-all', '--node-modules-dir=manual']],
]

await runMain(() => {
  const names = process.argv.slice(2)
  const known = [...bundlers, ...runtimes].map(([name]) => name)
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length > 0) throw new SetupError(`Not in the matrix: ${unknown.join(', ')}. It has ${known.join(', ')}.`)
  build(installWorkspace(), ['@shoal/driver...', '@shoal/nccl...', '@shoal/sim'])
  const tools = fetchTools('bundlers', versions)
  const isWanted = ([name]) => names.length === 0 || names.includes(name)
  const scratch = mkdtempSync(join(tmpdir(), 'shoal-bundles-'))
  try {
    const project = makeProject(join(scratch, 'built-here'))
    const made = bundlers.filter(isWanted).filter((bundler) => bundle(project, tools, bundler))
    // At run time no file of the build folder may exist any more.
    const moved = join(scratch, 'runs-here')
    renameSync(project, moved)
    const failures = [
      ...made.flatMap((bundler) => problemsOf(moved, scratch, bundler)),
      ...bundlers
        .filter(isWanted)
        .filter((one) => !made.includes(one))
        .map(([name]) => `${name}: makes no bundle`),
      ...runtimes.filter(isWanted).flatMap(([name, file, options]) => {
        const executable = join(tools, 'node_modules', file)
        const runs = (program) => execute(executable, [...options, join(moved, program)])
        return [
          ...problem(name, runs('main.mjs'), '1,2,3'),
          ...problem(`${name}, sharing`, runs('sharing.mjs'), '5,5,5,7,9'),
        ]
      }),
    ]
    process.stdout.write(failures.map((failure) => `FAILED  ${failure}\n`).join(''))
    return failures.length === 0 ? 0 : 1
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
})

/** Creates a project with copies of the packages, like a package manager does. */
function makeProject(project) {
  const copy = (from, name) => cpSync(from, join(project, 'node_modules', name), { recursive: true })
  for (const { name, path, manifest } of publishablePackages().values()) {
    const isPlatform = manifest.os !== undefined
    if (!isPlatform && !existsSync(join(path, 'dist'))) continue
    for (const part of isPlatform ? ['.'] : ['package.json', 'dist']) copy(join(path, part), join(name, part))
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text)
  return project
}

function bundle(project, tools, [name, , command]) {
  const [program, ...options] = command.split(' ')
  const env = commandEnvironment([join(tools, 'node_modules', '.bin')])
  const log = { cwd: project, env, encoding: 'utf8', stdio: 'pipe' }
  const status = run(join(tools, 'node_modules', '.bin', program), options, log)
  process.stdout.write(status === 0 ? `made    ${name}\n` : '')
  return status === 0
}

function problemsOf(project, scratch, [name, main]) {
  const made = join(project, 'out', name)
  const away = join(scratch, `away-${name}`)
  cpSync(made, away, { recursive: true })
  const runs = (folder) => execute(process.execPath, [join(folder, main)])
  const beside = problem(`${name}, beside node_modules`, runs(made), '1,2,3')
  const alone = problem(`${name}, moved away`, runs(away), 'AddonLoadError')
  const addon = join(project, `node_modules/@shoal/ffi-${process.platform}-${process.arch}/shoal_ffi.node`)
  cpSync(addon, join(away, 'shoal_ffi.node'))
  return [...beside, ...alone, ...problem(`${name}, with the addon beside it`, runs(away), '1,2,3')]
}

function execute(command, options) {
  const folder = join(root, 'packages/sim/prebuilds', `${process.platform}-${process.arch}`)
  const env = { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_FOLDER: folder, DENO_NO_UPDATE_CHECK: '1' }
  const { stdout, stderr, status } = spawnSync(command, options, { env, encoding: 'utf8' })
  return { stdout: stdout ?? '', stderr: stderr ?? '', status }
}

function problem(title, { stdout, stderr, status }, wanted) {
  const isGood = stdout.startsWith(wanted) && status === 0
  if (isGood) process.stdout.write(`passed  ${title}: ${wanted}\n`)
  return isGood ? [] : [`${title}: wanted ${wanted}\n${stdout}${stderr}`]
}
