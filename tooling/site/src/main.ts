#!/usr/bin/env node
// Makes the site: `npm run site [FOLDER]`.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { Links, packageOrder, pagesOf, readDocuments } from './documents.js'
import { readExports } from './exports.js'
import { htmlOf } from './layout.js'
import type { Page } from './pages.js'
import { Reference } from './reference.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const out = resolve(process.argv[2] ?? join(root, 'docs/site'))

const documents = readDocuments(root)
const links = new Links(root, documents)
const reference = new Reference(readExports(join(root, 'packages')))
const written = documents.map((document) => ({ document, ...pagesOf(document, links) }))
const texts = new Map(written.map(({ document, pages }) => [document.file, pages]))
const packages = packageOrder.flatMap((name) => reference.pages(name, texts.get(`packages/${name}/README.md`)!))
if (reference.broken.length > 0) throw new Error(`Links of docstrings lead nowhere:\n${reference.broken.join('\n')}`)

const inOrder = written.filter(({ document }) => document.section !== 'Reference').flatMap(({ pages }) => pages)
const documentPages = inOrder.map((page, index): Page => {
  const next = inOrder[index + 1]
  const previous = inOrder[index - 1]
  return {
    ...page,
    previous: previous?.section === page.section ? previous : undefined,
    next: next?.section === page.section ? next : undefined,
  }
})
const places = documents.slice(1).map(({ title, section, parts }) => ({ section, title, url: parts[0]!.url }))
const found = [...written.flatMap((one) => one.found), ...reference.found()]
const { version } = JSON.parse(readFileSync(join(root, 'packages/driver/package.json'), 'utf8')) as { version: string }

rmSync(out, { recursive: true, force: true })
const write = (path: string, content: string): void => {
  mkdirSync(dirname(join(out, path)), { recursive: true })
  writeFileSync(join(out, path), content)
}
const pages = [...documentPages, ...packages]
for (const page of pages) write(page.url, htmlOf(page, places, version))
write('site.css', readFileSync(join(root, 'tooling/site/client/site.css'), 'utf8'))
write('search.js', `globalThis.found = ${JSON.stringify(found)}\n`)
for (const file of links.files) {
  mkdirSync(dirname(join(out, 'files', file)), { recursive: true })
  copyFileSync(join(root, file), join(out, 'files', file))
}
const client = await rolldown({ input: fileURLToPath(new URL('client.js', import.meta.url)), platform: 'browser' })
await client.write({ file: join(out, 'site.js'), format: 'iife', minify: true })
await client.close()
process.stdout.write(`${pages.length} pages in ${out}\n`)
