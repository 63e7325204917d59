#!/usr/bin/env node
// Adds the CommonJS entries of the package in the current folder. `require` of Node.js and of bundlers loads ES
// modules, so there both kinds of import share one module. But TypeScript does not know this under `module: node16` and
// `node18`, and Jest's `require` cannot load ES modules. So each entry gets a CommonJS file of a few lines, and a
// loader converts the ES modules if `require` fails. A second set of bundles would double the size of the packages.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { parseSync } from 'rolldown/utils'

const { exports: entryPoints } = JSON.parse(readFileSync('package.json', 'utf8'))
const entries = Object.values(entryPoints).filter(({ require: required }) => required !== undefined)
const loader = new URL('commonjsLoader.cjs', import.meta.url)
for (const { require: required, default: file } of entries) {
  const own = `./${basename(file)}`
  const place = relative(dirname(file), 'dist/commonjs.cjs')
  const loaderPlace = place.startsWith('.') ? place : `./${place}`
  writeFileSync(
    required.default,
    `try {\n  module.exports = require('${own}')\n} catch (error) {\n` +
      `  module.exports = require('${loaderPlace}')(module, '${own}', error)\n}\n`,
  )
  writeFileSync(required.types, `// @ts-ignore TS1479\nexport * from '${own}'\n`)
}

if (entries.length > 0) {
  copyFileSync(loader, 'dist/commonjs.cjs')
  const { convert } = createRequire(import.meta.url)('./commonjsLoader.cjs')
  for (const name of readdirSync('dist', { recursive: true }).filter((each) => each.endsWith('.js'))) {
    const file = join('dist', name)
    const { errors, program } = parseSync('converted.cjs', convert(readFileSync(file, 'utf8')), {
      sourceType: 'script',
    })
    const [error = program.body.length === 1 ? undefined : { message: 'more than a function' }] = errors
    if (error !== undefined) throw new Error(`${file} cannot be converted to CommonJS: ${error.message}`)
  }
}
