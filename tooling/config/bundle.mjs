#!/usr/bin/env node
// Bundles the JavaScript of the package in the current folder: one file an entry, with the parts that entries share beside
// them. Import cost is mostly the number of modules, so a package of forty files would take ten times as long to load.
// Types stay as tsc wrote them; dependencies stay imports.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { rolldown } from 'rolldown'

const { exports: entryPoints } = JSON.parse(readFileSync('package.json', 'utf8'))
const input = {}
for (const target of Object.values(entryPoints)) {
  if (typeof target !== 'object') continue
  const name = relative('dist', target.default).replace(/\.js$/, '')
  input[name] = join('src', `${name}.ts`)
}

// A part of another entry's generated code is bundled alone, as parts that entries share are whole source files. What keeps
// state is shared with that entry all the same.
const isGenerated = (file) => file.includes('/generated/')
const alone = Object.keys(input).filter((name) => name.endsWith('/common'))
const kept = new Set()
const output = []

async function write(entries, options) {
  const external = /^(?:node:|[^./])/
  const bundle = await rolldown({ input: entries, platform: 'node', external, treeshake: true, ...options })
  const written = await bundle.write({
    dir: 'dist',
    format: 'esm',
    chunkFileNames: 'shared/[name]-[hash].js',
    minify: false,
    comments: false, // they are in the types, where editors look for them
  })
  await bundle.close()
  output.push(...written.output)
}

for (const name of alone) {
  const entry = resolve(input[name])
  delete input[name]
  const keepState = {
    name: 'keep-state',
    resolveId(source, importer) {
      if (importer === undefined || !source.startsWith('.')) return null
      const file = resolve(dirname(importer), source).replace(/\.js$/, '.ts')
      if (isGenerated(file)) return null
      const part = relative(resolve('src'), file).replace(/\.ts$/, '')
      kept.add(part)
      return { id: `./${relative(dirname(name), part)}.js`, external: true }
    },
  }
  await write({ [name]: entry }, { plugins: [keepState] })
}
const keptInput = Object.fromEntries([...kept].map((part) => [part, join('src', `${part}.ts`)]))
// Parts that are entries for that reason alone may hold what other entries need of them.
await write({ ...input, ...keptInput }, kept.size > 0 ? { preserveEntrySignatures: 'allow-extension' } : {})

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
