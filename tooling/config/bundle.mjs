#!/usr/bin/env node
// Bundles the JavaScript of the package in the current folder: one file an entry, with the parts that entries share beside
// them. Import cost is mostly the number of modules, so a package of forty files would take ten times as long to load.
// Types stay as tsc wrote them; dependencies stay imports.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { rolldown } from 'rolldown'

const { exports: entryPoints, dependencies = {} } = JSON.parse(readFileSync('package.json', 'utf8'))
const input = {}
for (const target of Object.values(entryPoints)) {
  if (typeof target !== 'object') continue
  const name = relative('dist', target.default).replace(/\.js$/, '')
  input[name] = join('src', `${name}.ts`)
}

// A part of another entry's generated code is bundled alone, as parts that entries share are whole source files. The state that
// both need stands in that part, and what the entry points around it need of the state comes from there.
const common = Object.keys(input).filter((name) => name.endsWith('/common'))
const output = []

async function write(entries, plugins = []) {
  const external = (id) => /^(?:node:|[^./])/.test(id) && !isTakenFromElsewhere(id)
  const preserveEntrySignatures = 'allow-extension'
  const bundle = await rolldown({
    input: entries,
    platform: 'node',
    external,
    preserveEntrySignatures,
    plugins: [...plugins, passedOn, fromOneFile],
  })
  const written = await bundle.write({
    dir: 'dist',
    format: 'esm',
    chunkFileNames: 'shared/[name]-[hash].js',
    minify: false,
    comments: false, // they are in the types, where editors look for them
    plugins: [builtinsWithoutFacades],
  })
  await bundle.close()
  output.push(...written.output)
}

// An import of a part of Node makes a module with all its exports first, which takes longer than to load the part.
const builtinsWithoutFacades = {
  name: 'builtins-without-facades',
  renderChunk: (code) =>
    code.replaceAll(/^import \{ (.*) \} from "(node:[\w/]+)";$/gm, (_, names, part) => {
      return `const { ${names.replaceAll(' as ', ': ')} } = process.getBuiltinModule("${part}");`
    }),
}

// An entry point that passes on what others have, in the package that passes it on once more: one module less to load.
const passedOn = {
  name: 'passed-on',
  resolveId(source, importer) {
    if (source.startsWith('@') && source.endsWith('/public'))
      return resolve('node_modules', dirname(source), 'dist/public.js')
    const [, name] = /node_modules\/(@\w+\/[\w-]+)\/dist\/public\.js$/.exec(importer ?? '') ?? []
    return name !== undefined && source === './index.js' ? { id: name, external: true } : null
  },
}

// What ffi and types have is in one file of ffi, too: one import for three.
const inOneFile = dependencies['@shoal/ffi'] === undefined ? [] : ['@shoal/ffi', '@shoal/ffi/calls', '@shoal/types']
const fromOneFile = {
  name: 'from-one-file',
  resolveId: (source) => (inOneFile.includes(source) ? { id: '@shoal/ffi/internal', external: true } : null),
}

function isTakenFromElsewhere(id) {
  return id.endsWith('/public') || inOneFile.includes(id)
}

const stateFromCommon = {
  name: 'state-from-common',
  resolveId(source, importer) {
    if (importer === undefined || !source.startsWith('.')) return null
    const file = relative(resolve('src'), resolve(dirname(importer), source))
    const part = common.find((name) => dirname(name) === dirname(file))
    return part === undefined ? null : { id: resolve('src', `${part}.js`), external: 'relative' }
  },
}

for (const name of common) {
  await write({ [name]: input[name] })
  delete input[name]
}
await write(input, [stateFromCommon])

// What an earlier build left: JavaScript that this one did not write, types of sources that are no longer there.
const written = new Set(output.map(({ fileName }) => join('dist', fileName)))
for (const entry of readdirSync('dist', { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath, entry.name)
  if (!entry.isFile()) continue
  const source = join('src', relative('dist', file)).replace(/\.d\.ts(\.map)?$/, '.ts')
  const isStale = source.endsWith('.ts') ? !existsSync(source) : file.endsWith('.js') && !written.has(file)
  if (isStale) rmSync(file)
}
for (const folder of readdirSync('dist', { recursive: true, withFileTypes: true }).reverse()) {
  const path = join(folder.parentPath, folder.name)
  if (folder.isDirectory() && readdirSync(path).length === 0) rmdirSync(path)
}
