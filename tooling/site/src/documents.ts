// The pages that are written by hand: guides in the order in which docs/README.md lists them, examples, design notes.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { libraries, rawPackages } from '../../libraries/index.mjs'
import { type Heading, headingsOf, render, wordsOf } from './markdown.js'
import { type Found, type Page, relativeUrl } from './pages.js'

export interface Document {
  /** Below the repository's root. */
  readonly file: string
  readonly title: string
  readonly section: string
  /** What docs/README.md says of it. */
  readonly about: string
  readonly parts: readonly Part[]
}

interface Part {
  readonly url: string
  readonly title: string
  readonly text: string
  readonly headings: readonly Heading[]
}

/** The packages, those that programs begin with first. */
export const packageOrder: readonly string[] = [
  ...libraries.flatMap(({ safePackages }) => safePackages),
  'launch',
  'cli',
  'sim',
  'types',
  'ffi',
  ...rawPackages,
]

/** How high a page may become before it is cut at its headings, in pixels of a screen. */
const highest = 5200

/** All documents, in reading order. */
export function readDocuments(root: string): Document[] {
  const index = readFileSync(join(root, 'docs/README.md'), 'utf8')
  const listed = [...index.matchAll(/^## (.*)$|^\| \[[^\]]*\]\(([^)]+)\) \|(.*)\|$/gm)]
  const documents: Document[] = [document('docs/README.md', 'Shoal', '')]
  let section = ''
  for (const [, heading, link, about = ''] of listed) {
    if (heading !== undefined) section = heading
    if (link === undefined || /^[a-z]+:/.test(link)) continue
    const path = join('docs', link.replace(/#.*/, ''))
    documents.push(document(path.endsWith('.md') ? path : join(path, 'README.md'), section, about))
  }
  const notes = readdirSync(join(root, 'docs/design')).filter((name) => name.endsWith('.md') && name !== 'README.md')
  const designs = notes.map((name) => document(join('docs/design', name), 'Design notes', ''))
  const packages = packageOrder.map((name) => document(join('packages', name, 'README.md'), 'Reference', ''))
  return [...documents, ...designs, ...packages]

  function document(file: string, section: string, about: string): Document {
    const source = readFileSync(join(root, file), 'utf8').replace(/^---\n[\s\S]*?\n---\n/, '')
    const text = file.startsWith('docs/examples') ? `${source}\n${programsOf(join(root, dirname(file)))}` : source
    const title = /^# (.*)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? file
    return { file, title, section, about: wordsOf(about), parts: partsOf(text, urlOf(file), title) }
  }
}

function urlOf(file: string): string {
  if (file === 'docs/README.md') return 'index.html'
  const path = file
    .replace(/^docs\//, '')
    .replace(/\.md$/, '')
    .toLowerCase()
  return `${path.replace(/^(examples\/[\w-]+|packages\/[\w-]+)\/readme$/, '$1').replace(/\/readme$/, '/index')}.html`
}

/** The sources of an example, below its text. */
function programsOf(folder: string): string {
  const sources = ['src', 'python', 'kernels'].filter((name) => existsSync(join(folder, name)))
  const files = sources.flatMap((name) => readdirSync(join(folder, name)).map((file) => join(name, file)))
  const programs = files
    .filter((file) => /\.(?:ts|py|cu)$/.test(file))
    .map((file) => {
      const fence = `\`\`\`${file.split('.').at(-1)}\n${readFileSync(join(folder, file), 'utf8')}\`\`\``
      return `## ${file}\n\n${fence}\n`
    })
  return programs.join('\n')
}

/** Cuts what would be too high for one page, before headings of the second level. */
function partsOf(text: string, url: string, title: string): Part[] {
  const lines = text.split('\n')
  const cuts = headingsOf(text)
    .filter(({ level }) => level === 2)
    .map(({ line }) => line)
  const sections = [0, ...cuts].map((from, index) => lines.slice(from, cuts[index] ?? lines.length).join('\n'))
  const total = sections.reduce((sum, section) => sum + heightOf(section), 0)
  const each = total / Math.ceil(total / highest)
  const parts: string[] = ['']
  for (const section of sections) {
    const now = parts.at(-1)!
    if (now !== '' && heightOf(now) + heightOf(section) / 2 > each) parts.push(section)
    else parts[parts.length - 1] = `${now}${now === '' ? '' : '\n'}${section}`
  }
  return parts.map((part, index) => ({
    url: index === 0 ? url : url.replace('.html', `-${index + 1}.html`),
    title: parts.length === 1 ? title : `${title} (${index + 1} of ${parts.length})`,
    text: index === 0 ? part : `# ${title} (${index + 1} of ${parts.length})\n\n${part}`,
    headings: headingsOf(part),
  }))
}

/** About what the text takes on a wide screen, in pixels. */
function heightOf(text: string): number {
  let height = 0
  let isCode = false
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    if (isCode) height += line.startsWith('```') ? 40 : 21
    else if (line.startsWith('|')) height += 34 + 24 * Math.floor(line.length / 130)
    else if (line.startsWith('#')) height += 60
    else height += line === '' ? 14 : (28 * line.length) / 95
  }
  return height
}

/** Where the parts of documents link to: other documents, files that are copied beside them, or nothing. */
export class Links {
  readonly #root: string
  readonly #anchors = new Map<string, Map<string, string>>()
  /** Files that pages link to and that are no pages. */
  readonly files = new Set<string>()

  constructor(root: string, documents: readonly Document[]) {
    this.#root = root
    for (const { file, parts } of documents) {
      const anchors = new Map([['', parts[0]!.url]])
      for (const { url, headings } of parts) for (const { id } of headings) anchors.set(id, `${url}#${id}`)
      this.#anchors.set(file, anchors)
    }
  }

  /** @throws Error where the link leads nowhere */
  resolve(file: string, page: string, target: string): string | undefined {
    if (/^[a-z]+:/.test(target)) return target
    const [path = '', id = ''] = target.split('#')
    const wanted = path === '' ? file : join(dirname(file), path)
    const readme = join(wanted, 'README.md')
    const anchors =
      this.#anchors.get(wanted) ??
      this.#anchors.get(readme) ??
      (wanted === 'README.md' ? this.#anchors.get('docs/README.md') : undefined)
    if (anchors !== undefined) {
      const url = anchors.get(id)
      if (url === undefined) throw new Error(`${file}: no heading for ${target}.`)
      return relativeUrl(page, url)
    }
    const whole = join(this.#root, wanted)
    if (!existsSync(whole)) throw new Error(`${file}: nothing at ${target}.`)
    if (wanted.endsWith('.svg')) return readFileSync(whole, 'utf8')
    if (!/\.\w+$/.test(wanted)) return undefined
    this.files.add(wanted)
    return relativeUrl(page, join('files', wanted))
  }
}

/** The pages of a document, and what the search has to know of them. */
export function pagesOf(document: Document, links: Links): { pages: Page[]; found: Found[] } {
  const { file, section } = document
  const pages = document.parts.map(({ url, title, text, headings }) => ({
    url,
    title,
    section,
    html: render(text, (target) => links.resolve(file, url, target)),
    outline: headings.filter(({ level }) => level === 2).map(({ id, text }) => ({ url: `#${id}`, text })),
  }))
  const found = document.parts.flatMap(({ url, text, headings }) => {
    const lines = text.split('\n')
    const starts = headings.filter(({ level, text }) => level <= 2 && !/\.(?:ts|py|cu)$/.test(text))
    return starts.map(({ id, level, text: heading, line }, index) => ({
      url: level === 1 ? url : `${url}#${id}`,
      title: level === 1 ? document.title : `${document.title}: ${heading}`,
      kind: section,
      text: wordsOf(lines.slice(line, starts[index + 1]?.line).join('\n')),
      about: document.about,
      weight:
        (level === 1 ? 1.3 : 1) * (file.startsWith('docs/guides') ? 2 : file.startsWith('docs/examples') ? 1 : 0.4),
    }))
  })
  return { pages, found: file === 'docs/README.md' ? [] : found }
}
