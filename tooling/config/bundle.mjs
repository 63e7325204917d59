#!/usr/bin/env node
// Bundles the JavaScript of the package in the current folder with rolldown: one file per entry, and chunks for the
// code that entries share. The cost of an import is mostly the number of modules, so a package of forty files would
// load ten times slower.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { rolldown } from 'rolldown'
import { mergeDeclarations } from './declarations.mjs'

const { name, exports: entryPoints, devDependencies = {} } = JSON.parse(readFileSync('package.json', 'utf8'))
const entries = Object.values(entryPoints).filter((target) => typeof target === 'object')
const input = Object.fromEntries(
  entries.map((target) => {
    const entry = relative('dist', target.default).replace(/\.js$/, '')
    return [entry, join('src', `${entry}.ts`)]
  }),
)

// If the manifest names a raw package only for the build (`devDependencies`), the bundle includes the part that it
// uses, and users need not install the rest. The bundler reads sources here, because it can drop each unused module of
// them.
const raw = Object.keys(devDependencies).filter((each) => each.endsWith('-sys'))

const rawFolder = (each) => resolve('..', each.replace('@shoal/', ''))

/** Maps each import specifier of a package to the file that its manifest names for it. */
function entriesOf(folder, condition) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const targets = Object.entries(manifest.exports).filter(([, target]) => target[condition] !== undefined)
  return targets.map(([path, target]) => [join(manifest.name, path), join(folder, target[condition])])
}
// A source may import an entry of its own package by the entry's name.
const sources = [...raw.map(rawFolder), resolve('.')].flatMap((folder) => entriesOf(folder, 'default'))
const alias = new Map(sources.map(([id, file]) => [id, file.replace('/dist/', '/src/').replace(/\.js$/, '.ts')]))
const rawTypes = new Map(raw.flatMap((each) => entriesOf(rawFolder(each), 'types')))

// V8 looks up an imported name at each use, but it inlines a constant of the same file. Without this plugin a prepared
// launch on the null driver takes 6 % longer, on Node.js 20 and 24. Classes stay imports because calls seldom need
// them. The copies are safe: no imported value changes after loading.
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

// Importing a part of Node.js first creates a module of all its exports. Without this plugin, importing `ffi` takes a
// third longer.
const builtinsWithoutFacades = {
  name: 'builtins-without-facades',
  renderChunk: (code) =>
    code.replaceAll(/^import \{ (.*) \} from "(node:[\w/]+)";$/gm, (_, names, part) => {
      return `const { ${names.replaceAll(' as ', ': ')} } = process.getBuiltinModule("${part}");`
    }),
}

// Entries share one chunk instead of many small ones, because each file adds half a millisecond to an import. The code
// that the entry `basics` needs is a chunk of its own, so packages that import `basics` load nothing else.
const reachedByBasics = new Set()
function chunkOf(id, context) {
  const reach = (each) => {
    if (reachedByBasics.has(each)) return
    reachedByBasics.add(each)
    for (const imported of context.getModuleInfo(each)?.importedIds ?? []) reach(imported)
  }
  if (input.basics !== undefined) reach(resolve(input.basics))
  return reachedByBasics.has(id) ? 'basics' : 'common'
}

const bundle = await rolldown({
  input,
  platform: 'node',
  external: (id) => /^[^./]/.test(id) && !alias.has(id),
  // The longest alias comes first, because an alias also matches longer names that begin with it.
  resolve: { alias: Object.fromEntries([...alias].sort(([one], [other]) => other.length - one.length)) },
})
const { output } = await bundle.write({
  dir: 'dist',
  chunkFileNames: 'shared/[name]-[hash].js',
  codeSplitting: { groups: [{ name: chunkOf, debugName: 'shared', minShareCount: 2 }] },
  comments: false, // the declarations keep them, and editors read those
  plugins: [builtinsWithoutFacades, importsAsConstants],
})
await bundle.close()

// Declarations of raw packages are not merged: there, each file is a chapter.
const declarations = new Map(
  Object.entries(entryPoints).flatMap(([path, { types }]) => (types === undefined ? [] : [[join(name, path), types]])),
)
const isMerged = [...declarations.values()].some((entry) => readFileSync(entry, 'utf8').includes('/declarations.js'))
if (!name.endsWith('-sys') && !isMerged) {
  mergeDeclarations(declarations, (id) => (rawTypes.has(id) ? relative('.', dirname(rawTypes.get(id))) : undefined))
}

await import('./commonjs.mjs')

// An earlier build may have left JavaScript that this build did not write, and types of deleted sources.
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
