#!/usr/bin/env node
// What CommonJS gets of the package in the current folder: the same module, by `require`, which loads ES modules in every Node.js that the
// packages run on. TypeScript does not know that under `module: node16` and `node18`, hence a module of two lines for it.
import { readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'

const { exports: entryPoints } = JSON.parse(readFileSync('package.json', 'utf8'))
for (const { require: required, default: file } of Object.values(entryPoints)) {
  if (required === undefined) continue
  writeFileSync(required.default, `module.exports = require('./${basename(file)}')\n`)
  writeFileSync(required.types, `// @ts-ignore TS1479\nexport * from './${basename(file)}'\n`)
}
