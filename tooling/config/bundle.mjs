#!/usr/bin/env node
// Bundles the JavaScript of the package in the current folder: one file an entry, with the parts that entries share beside
// them. Import cost is mostly the number of modules, so a package of forty files would take ten times as long to load.
// Dependencies stay imports, but for raw packages that are there for the build alone.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
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
const common = Object.keys(input).filter((name) => /\/common$/.test(name))

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
    plugins: [builtinsWithoutFacades, importsAsConstants, aStatementALine],
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

// What is imported V8 looks up in each use, and checks what it is; of a constant of the same file it knows that, and puts what is called
// into its caller. Classes are left as they are, which calls seldom need. No import changes after it was loaded.
const importsAsConstants = {
  name: 'imports-as-constants',
  renderChunk(code) {
    const used = new Set(code.replaceAll(/^(?:import|export) .*$/gm, '').match(/[\w$]+/g))
    const constants = []
    const asConstant = (specifier) => {
      const [imported, local = imported] = specifier.split(' as ')
      if (!used.has(local) || /^[A-Z]/.test(local)) return specifier
      const alias = `$${constants.length}`
      constants.push(`${local} = ${alias}`)
      return `${imported} as ${alias}`
    }
    return code
      .replaceAll(/^import \{ (.*) \} from (?="[@.])/gm, (_, names) => {
        return `import { ${names.split(', ').map(asConstant).join(', ')} } from `
      })
      .replace(/^import /m, () => (constants.length === 0 ? 'import ' : `const ${constants.join(', ')};\nimport `))
  },
}

// No space that nobody reads, and short names of what is inside of functions: a third of an install. Functions, classes and what has
// properties keep their names, and each statement has a line of its own: a stack trace names what it leads to, and Node.js, which prints
// the line of an error, prints no more than that. Escapes for what is not ASCII, as V8 keeps other texts at twice the size.
const aStatementALine = {
  name: 'a-statement-a-line',
  renderChunk(code, { fileName }) {
    const mangle = { toplevel: false, keepNames: true }
    const options = { compress: false, mangle, codegen: { removeWhitespace: true } }
    // It takes the notes along with the spaces that tell a user's bundler what it may leave out.
    const short = minifySync(fileName, code, options)
      .code.replaceAll('=defineStructCodec(', '=/*@__PURE__*/defineStructCodec(')
      .replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
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
    return source === './internal.js' && importer?.endsWith('/dist/public.js') ? oneFile : null
  },
}

// What ffi and types have is in one file of ffi, too, and with what cuda-base has in one of cuda-base: a package has all from one
// import. Node resolves every import of another package anew, which takes as long as V8 takes for twenty thousand characters.
const cudaBase = '@shoal/cuda-base'
const usesAllOfBase = name === cudaBase || sourceTexts().some((text) => text.includes(`from '${cudaBase}'`))
const below = name.startsWith('@shoal/ffi')
  ? []
  : ['@shoal/ffi', '@shoal/ffi/calls', '@shoal/types', cudaBase, `${cudaBase}/basics`]
let oneFile = { id: '@shoal/ffi/internal', external: true }
if (dependencies[cudaBase] !== undefined) oneFile.id = `${cudaBase}/${usesAllOfBase ? 'internal' : 'internal-basics'}`
const inOneFile = dependencies['@shoal/ffi'] === undefined ? [] : below
const fromOneFile = {
  name: 'from-one-file',
  resolveId: (source) => (inOneFile.includes(source) ? oneFile : null),
}

function sourceTexts() {
  const files = readdirSync('src', { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
  return files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8'))
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

// The state of the driver's library is in cuda-base, and what driver and runtime use of the driver, too. The others have little of it,
// and have that themselves.
const driverFolder = join(rawFolder('@shoal/cuda-sys'), 'src/driver')
const driverState = ['library', 'context'].map((part) => join(driverFolder, `${part}.ts`))
const fromBase = {
  name: 'from-base',
  resolveId(source, importer) {
    if (dependencies[cudaBase] === undefined) return null
    const isCommon = source === '@shoal/cuda-sys/driver/common' && usesAllOfBase
    return isCommon || driverState.includes(sourceFile(source, importer)) ? oneFile : null
  },
}

// The files of cuda-base from which other packages have all: each is bundled alone, and has what it can have from the one before it. Other
// entries have everything from the last.
const layers = name === cudaBase ? { internalBasics: 'basics', internal: 'index' } : {}
const layerOf = new Map()
const fromLayers = {
  name: 'from-layers',
  resolveId(source, importer) {
    return layerOf.get(sourceFile(source, importer)) ?? null
  },
}

function sourceFile(source, importer) {
  if (isRaw(source)) return sourceOf(source)
  return importer !== undefined && source.startsWith('.')
    ? resolve(dirname(importer), source).replace(/\.js$/, '.ts')
    : undefined
}

/** An entry that has a part of a layer. */
async function writeFacade(entry, layer) {
  const bundle = await rolldown({ input: input[entry], external: /^[^./]/, preserveEntrySignatures: 'strict' })
  const [{ exports }] = (await bundle.generate()).output
  await bundle.close()
  const fileName = `${entry}.js`
  writeFileSync(join('dist', fileName), `export{${exports.join()}}from"./${layer}.js"\n`)
  output.push({ fileName })
}

async function writeLayer(layer) {
  await write({ [layer]: input[layer] }, [fromLayers])
  const file = { id: resolve('src', `${layer}.js`), external: 'relative' }
  const written = output.at(-1).moduleIds.filter((id) => id.startsWith(resolve('src')) || driverState.includes(id))
  for (const id of [...layerOf.keys(), ...written]) layerOf.set(id, file)
  oneFile = file
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

for (const [layer, facade] of Object.entries(layers)) {
  await writeLayer(layer)
  await writeFacade(facade, layer)
  for (const name of [layer, facade]) delete input[name]
}
if (layerOf.size > 0) layerOf.set(sourceOf('@shoal/cuda-sys/driver/common'), oneFile)
for (const name of common) {
  await write({ [name]: input[name] })
  delete input[name]
}
await write(input, [stateFromCommon, fromBase, fromLayers])

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
