// /usr/bin/env node Bundles the JavaScript of the package in the current folder with rolldown: one file per entry, and
// chunks for what entries share. Import cost is mostly the number of modules, so a package of forty files would take
// ten times as long to load.
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

// The used part of a raw package becomes a part of this package if the manifest names it for the build alone. Users
// need not install the rest. It comes from sources, where each module that nothing uses is left out.
const raw = Object.keys(devDependencies).filter((each) => each.endsWith('-sys'))

const rawFolder = (each) => resolve('..', each.replace('@shoal/', ''))

/** The files behind the entries of a package, by what programs import, as its manifest says. */
function entriesOf(folder, condition) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const targets = Object.entries(manifest.exports).filter(([, target]) => target[condition] !== undefined)
  return targets.map(([path, target]) => [join(manifest.name, path), join(folder, target[condition])])
}
// Sources may import an entry of their own package by its name.
const sources = [...raw.map(rawFolder), resolve('.')].flatMap((folder) => entriesOf(folder, 'default'))
const alias = new Map(sources.map(([id, file]) => [id, file.replace('/dist/', '/src/').replace(/\.js$/, '.ts')]))
const rawTypes = new Map(raw.flatMap((each) => entriesOf(rawFolder(each), 'types')))

// V8 looks an imported name up in each use, but knows the value of a constant of the same file and inlines it. A
// prepared launch on the null driver takes 6 % longer without this, on Node.js 20 and on 24. Classes stay: calls seldom
// need them. No import changes once loaded.
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

// An import of a part of Node.js first makes a module of all its exports. Without this, importing `ffi` takes a third
// longer.
const builtinsWithoutFacades = {
  name: 'builtins-without-facades',
  renderChunk: (code) =>
    code.replaceAll(/^import \{ (.*) \} from "(node:[\w/]+)";$/gm, (_, names, part) => {
      return `const { ${names.replaceAll(' as ', ': ')} } = process.getBuiltinModule("${part}");`
    }),
}

// Entries share one chunk instead of many small ones, as each file costs half a millisecond of an import. What the
// entry `basics` needs is a chunk of its own: packages that import `basics` load no more than that.
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
  // The longest first: an alias also stands for names that begin with it.
  resolve: { alias: Object.fromEntries([...alias].sort(([one], [other]) => other.length - one.length)) },
})
const { output } = await bundle.write({
  dir: 'dist',
  chunkFileNames: 'shared/[name]-[hash].js',
  codeSplitting: { groups: [{ name: chunkOf, debugName: 'shared', minShareCount: 2 }] },
  comments: false, // they are in the declarations, where editors look for them
  plugins: [builtinsWithoutFacades, importsAsConstants],
})
await bundle.close()

// Declarations of raw packages stay as they are: a file is a chapter there.
const declarations = new Map(
  Object.entries(entryPoints).flatMap(([path, { types }]) => (types === undefined ? [] : [[join(name, path), types]])),
)
const isMerged = [...declarations.values()].some((entry) => readFileSync(entry, 'utf8').includes('/declarations.js'))
if (!name.endsWith('-sys') && !isMerged) {
  mergeDeclarations(declarations, (id) => (rawTypes.has(id) ? relative('.', dirname(rawTypes.get(id))) : undefined))
}

await import('./commonjs.mjs')

// An earlier build left JavaScript that this one did not write, and types of sources that are gone.
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
