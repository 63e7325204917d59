// Reads the handwritten pages: guides in the order of docs/README.md, examples, design notes, and the text of each
// package.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { packageOrder, root } from './packages.mjs'

/** Returns all documents in reading order: `{ file, page, title, section, about, text }`. */
export function readDocuments() {
  const index = readFileSync(join(root, 'docs/README.md'), 'utf8')
  const listed = [...index.matchAll(/^## (.*)$|^\| \[[^\]]*\]\(([^)]+)\) \|(.*)\|$/gm)]
  const documents = [documentOf('docs/README.md', '')]
  let section = ''
  for (const [, heading, link, about = ''] of listed) {
    if (heading !== undefined) section = heading
    if (link === undefined || /^[a-z]+:/.test(link)) continue
    const path = join('docs', link.replace(/#.*/, ''))
    documents.push(documentOf(path.endsWith('.md') ? path : join(path, 'README.md'), section, about.trim()))
  }
  const notes = readdirSync(join(root, 'docs/design')).filter((name) => name.endsWith('.md') && name !== 'README.md')
  const tasks = readdirSync(join(root, 'docs/contributing'))
  return [
    ...documents,
    ...notes.map((name) => documentOf(`docs/design/${name}`, 'Design notes')),
    ...tasks.map((name) => documentOf(`docs/contributing/${name}`, 'Contributing')),
    ...packageOrder.map((name) => documentOf(`packages/${name}/README.md`, 'Reference')),
  ]
}

function documentOf(file, section, about = '') {
  const source = readFileSync(join(root, file), 'utf8').replace(/^---\n[\s\S]*?\n---\n/, '')
  const text = file.startsWith('docs/examples') ? `${source}\n${programsOf(dirname(file))}` : source
  const title = /^# (.*)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? file
  return { file, page: pageOf(file), title, section, about, text }
}

/** Returns the page of a file, relative to the site's root. */
export function pageOf(file) {
  if (file === 'docs/README.md') return 'guides/index.md'
  const path = file.replace(/^docs\//, '').toLowerCase()
  return path.replace(/^(examples\/[\w-]+)\/readme\.md$/, '$1.md').replace(/readme\.md$/, 'index.md')
}

/** Returns the sources of an example, which appear below its text. */
function programsOf(folder) {
  const sources = ['src', 'python', 'kernels'].filter((name) => existsSync(join(root, folder, name)))
  const files = sources.flatMap((name) => readdirSync(join(root, folder, name)).map((file) => join(name, file)))
  const programs = files
    .filter((file) => /\.(?:ts|py|cu)$/.test(file))
    .map(
      (file) =>
        `## ${file}\n\n\`\`\`${file.split('.').at(-1)}\n${readFileSync(join(root, folder, file), 'utf8')}\`\`\`\n`,
    )
  return programs.join('\n')
}

/**
 * Resolves a link of a document to another page, a file of the repository, or the image itself.
 * @throws Error if the target does not exist
 */
export function resolveLink(pages, source, file, target) {
  if (/^(?:[a-z]+:|#|\/)/.test(target)) return target
  const [path, hash] = target.split('#')
  const wanted = join(dirname(file), path)
  const page = [wanted, join(wanted, 'README.md'), wanted === 'README.md' ? 'docs/README.md' : ''].find((each) =>
    pages.has(each),
  )
  const id = hash === undefined ? '' : `#${hash}`
  if (page !== undefined)
    return `/${pages
      .get(page)
      .replace(/(?:^|\/)index\.md$/, (end) => (end.slice(0, 1) === '/' ? '/' : ''))
      .replace(/\.md$/, '')}${id}`
  if (!existsSync(join(root, wanted))) throw new Error(`${file}: nothing at ${target}.`)
  return `${source}/${wanted}${id}`
}
