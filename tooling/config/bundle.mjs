#!/usr/bin/env node
// Bundles the JavaScript of the package in the current folder: one file an entry, with the parts that entries share beside
// them. Import cost is mostly the number of modules, so a package of forty files would take ten times as long to load.
// Dependencies stay imports, but for raw packages that are there for the build alone.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { rolldown } from 'rolldown'
import { minifySync, parseSync, Visitor } from 'rolldown/utils'
import { mergeDeclarations } from './declarations.mjs'

const {
  name,
  exports: entryPoints,
  dependencies = {},
  devDependencies = {},
} = JSON.parse(readFileSync('package.json', 'utf8'))
const input = {}
for (const target of Object.values(entryPoints)) {
  if (typeof target !== 'object') continue
  const name = relative('dist', target.default).replace(/\.js$/, '')
  input[name] = join('src', `${name}.ts`)
}

// A part of another entry's generated code is bundled alone, as parts that entries share are whole source files. The state that
// both need stands in that part, and what the entry points around it need of the state comes from there.
const common = Object.keys(input).filter((name) => /(?:^sys|\/common)$/.test(name))

// A raw package that is there for the build alone: what is used of it becomes a part of this package, so that nobody installs the rest.
const raw = Object.keys(devDependencies).filter((name) => name.endsWith('-sys'))
const isRaw = (id) => raw.some((name) => id === name || id.startsWith(`${name}/`))
const rawFolder = (name) => resolve('..', name.replace('@shoal/', ''))
const output = []

async function write(entries, plugins = []) {
  const external = (id) => /^(?:node:|[^./])/.test(id) && !isTakenFromElsewhere(id) && !isRaw(id)
  const preserveEntrySignatures = 'allow-extension'
  const bundle = await rolldown({
    input: entries,
    platform: 'node',
    external,
    preserveEntrySignatures,
    plugins: [...plugins, passedOn, fromOneFile, fromSources],
  })
  const written = await bundle.write({
    dir: 'dist',
    format: 'esm',
    chunkFileNames: 'shared/[name]-[hash].js',
    minify: false,
    comments: false, // they are in the types, where editors look for them
    plugins: [builtinsWithoutFacades, aStatementALine],
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

// No space that nobody reads, which is a sixth of an install. All names stay, and each statement has a line of its own: a stack trace
// leads to it, and Node.js, which prints the line of an error, prints no more than that.
const aStatementALine = {
  name: 'a-statement-a-line',
  renderChunk(code, { fileName }) {
    const options = { compress: false, mangle: false, codegen: { removeWhitespace: true } }
    // It takes the notes along with the spaces that tell a user's bundler what it may leave out.
    const short = minifySync(fileName, code, options).code.replaceAll(
      '=defineStructCodec(',
      '=/*@__PURE__*/defineStructCodec(',
    )
    const starts = new Set()
    const eachOf = (nodes) => {
      for (const { start } of nodes) starts.add(start)
    }
    const unlessOne = ({ body }) => body.length > 1 && eachOf(body)
    new Visitor({
      Program: ({ body }) => eachOf(body),
      BlockStatement: unlessOne,
      ClassBody: ({ body }) => eachOf(body),
      SwitchStatement: ({ cases }) => eachOf(cases),
    }).visit(parseSync(fileName, short).program)
    const lines = [...starts].filter((start) => start > 0).sort((one, other) => one - other)
    return [0, ...lines].map((start, i) => short.slice(start, lines[i])).join('\n')
  },
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

/** What stands behind an entry of a raw package in its folder, as its manifest says. */
function rawTarget(specifier, condition) {
  const name = raw.find((each) => specifier === each || specifier.startsWith(`${each}/`))
  const { exports } = JSON.parse(readFileSync(join(rawFolder(name), 'package.json'), 'utf8'))
  return join(rawFolder(name), exports[`.${specifier.slice(name.length)}`][condition])
}
const sourceOf = (specifier) => rawTarget(specifier, 'default').replace('/dist/', '/src/').replace(/\.js$/, '.ts')
const fromSources = { name: 'from-sources', resolveId: (source) => (isRaw(source) ? sourceOf(source) : null) }

// What all safe packages use of the driver, and its state, is one file of cuda-base.
const driverPart = '@shoal/cuda-sys/driver/common'
const driverFolder = join(rawFolder('@shoal/cuda-sys'), 'src/driver')
const fromSys = {
  name: 'from-sys',
  resolveId(source, importer) {
    const file = importer !== undefined && source.startsWith('.') ? resolve(dirname(importer), source) : ''
    const isState = file === join(driverFolder, 'library.js') || file === join(driverFolder, 'context.js')
    if (!isRaw(driverPart) || (source !== driverPart && !isState)) return null
    return common.includes('sys')
      ? { id: resolve('src/sys.js'), external: 'relative' }
      : { id: '@shoal/cuda-base/sys', external: true }
  },
}

const stateFromCommon = {
  name: 'state-from-common',
  resolveId(source, importer) {
    if (importer === undefined || !source.startsWith('.')) return null
    const file = relative(resolve('src'), resolve(dirname(importer), source))
    const part = common.find((name) => name !== 'sys' && dirname(name) === dirname(file))
    return part === undefined ? null : { id: resolve('src', `${part}.js`), external: 'relative' }
  },
}

for (const name of common) {
  await write({ [name]: input[name] })
  delete input[name]
}
await write(input, [stateFromCommon, fromSys])

// Declarations of raw packages stay as they are: a file is a chapter there.
const declarations = new Map(
  Object.entries(entryPoints).flatMap(([path, { types }]) => (types === undefined ? [] : [[join(name, path), types]])),
)
const isMerged = [...declarations.values()].some((entry) => readFileSync(entry, 'utf8').includes('/declarations.js'))
if (!name.endsWith('-sys') && !isMerged) {
  mergeDeclarations(declarations, (id) => (isRaw(id) ? relative('.', dirname(rawTarget(id, 'types'))) : undefined))
}

await import('./commonjs.mjs')

// What an earlier build left: JavaScript that this one did not write, types of sources that are no longer there.
const written = new Set(output.map(({ fileName }) => join('dist', fileName)))
for (const entry of readdirSync('dist', { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath, entry.name)
  if (!entry.isFile()) continue
  const source = join('src', relative('dist', file)).replace(/\.d\.ts(\.map)?$/, '.ts')
  const isStale = source.endsWith('.ts')
    ? name.endsWith('-sys') && !existsSync(source)
    : file.endsWith('.js') && !written.has(file)
  if (isStale) rmSync(file)
}
for (const folder of readdirSync('dist', { recursive: true, withFileTypes: true }).reverse()) {
  const path = join(folder.parentPath, folder.name)
  if (folder.isDirectory() && readdirSync(path).length === 0) rmdirSync(path)
}
