#!/usr/bin/env node
// Makes the site: `npm run site [FOLDER]`. TypeDoc writes the reference as Markdown next to the documents. VitePress
// turns both into pages.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Application } from 'typedoc'
import { build } from 'vitepress'
import { readDocuments } from './documents.mjs'
import { packageOrder, root } from './packages.mjs'

const out = resolve(process.argv[2] ?? join(root, 'docs/site'))
const here = join(root, 'tooling/site')
const pages = join(here, 'build/pages')
process.chdir(root)
rmSync(join(here, 'build'), { recursive: true, force: true })

const app = await Application.bootstrapWithPlugins()
const project = await app.convert()
if (project === undefined) throw new Error('TypeDoc has not converted the packages; see above.')
app.validate(project)
await app.generateOutputs(project)
if (app.logger.hasErrors() || app.logger.hasWarnings()) throw new Error('TypeDoc has complaints; see above.')

const documents = readDocuments()
for (const { page, text, file } of documents) {
  const path = join(pages, page)
  mkdirSync(dirname(path), { recursive: true })
  const reference = file.startsWith('packages/') && file !== 'packages/cli/README.md' ? topicsOf(path) : ''
  writeFileSync(path, `${text}\n${reference}`)
}
mkdirSync(join(pages, 'public'))
copyFileSync(join(root, 'docs/shoal.svg'), join(pages, 'public/shoal.svg'))
writeFileSync(join(pages, 'index.md'), home())
writeFileSync(join(here, 'build/sidebar.json'), JSON.stringify(sidebar()))
await build(here, { outDir: out })

/** Makes the first page from the program and the figures at the start of README.md. */
function home() {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const [program] = /^```ts\n[\s\S]*?^```$/m.exec(readme) ?? []
  const rows = [...readme.matchAll(/^\| ([^|]+): (?:time|bandwidth|[\w ]+) \| (\d\.\d\d×)/gm)].slice(0, 3)
  if (program === undefined || rows.length < 3)
    throw new Error('README.md has no program, or fewer than three figures.')
  const figures = rows.map(([, work, ratio]) => ({ title: ratio, details: `of C: ${work}, on H200 GPUs` }))
  const template = readFileSync(join(here, 'home.md'), 'utf8')
  return template.replace('FIGURES', JSON.stringify(figures)).replace('PROGRAM', () => program)
}

/** Returns TypeDoc's part of a package's page, which follows the handwritten text. */
function topicsOf(path) {
  return readFileSync(path, 'utf8').replace(/^[\s\S]*?(?=^## )/m, '')
}

/**
 * Makes the navigation: sections of documents, and packages. The list is part of every page, so a section lists only
 * its own pages, and a package only its topics.
 */
function sidebar() {
  const linkOf = (page) => `/${page.replace(/index\.md$/, '').replace(/\.md$/, '')}`
  const written = documents.slice(1)
  const folders = ['guides', 'examples', 'design', 'contributing', 'hardware']
  const folderOf = ({ page }) => folders.find((folder) => page.startsWith(`${folder}/`)) ?? 'guides'
  const listOf = (folder) => {
    const own = written.filter((one) => folderOf(one) === folder && !one.file.startsWith('packages/'))
    return [...new Set(own.map(({ section }) => section))].map((section) => ({
      text: section,
      items: own
        .filter((one) => one.section === section)
        .map(({ title, page }) => ({ text: title, link: linkOf(page) })),
    }))
  }
  const every = { text: 'All packages', link: '/packages/' }
  const others = { text: 'Reference', items: [every] }
  const ownLists = folders.map((folder) => [`/${folder}/`, [...listOf(folder), others]])
  return {
    ...Object.fromEntries(packageOrder.flatMap(packageLists)),
    ...Object.fromEntries(ownLists),
    '/': [...listOf('guides'), others],
  }

  /**
   * Lists the topics of a package. If a package has more than 40 topics, a page lists only the topics that start with
   * the same word, and the first topic of each other word.
   */
  function packageLists(folder) {
    const names = readdirSync(join(pages, 'packages', folder)).filter(
      (name) => /^[a-z]/.test(name) && name !== 'index.md',
    )
    const topics = names.map((name) => ({
      text: /^# (.*)$/m.exec(readFileSync(join(pages, 'packages', folder, name), 'utf8'))[1].replaceAll('\\', ''),
      link: linkOf(`packages/${folder}/${name}`),
    }))
    const familyOf = ({ text }) => text.split(':')[0]
    const families = [...new Set(topics.map(familyOf))]
    const first = { text: `@shoal/${folder}`, link: `/packages/${folder}/` }
    const all = [
      `/packages/${folder}/`,
      [first, ...(topics.length > 40 ? [] : [{ text: 'Topics', items: topics }]), every],
    ]
    if (topics.length <= 40) return [all]
    const slug = (family) => family.toLowerCase().replaceAll(' ', '-')
    return [
      ...families.map((family) => [
        `/packages/${folder}/${slug(family)}`,
        [
          first,
          {
            text: family,
            items: topics.filter(
              (one) => familyOf(one) === family && !/: (?:Enums|Structs)|, deprecated/.test(one.text),
            ),
          },
          every,
        ],
      ]),
      all,
    ]
  }
}
