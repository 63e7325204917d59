import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { readDocuments } from '../dist/documents.js'
import { readExports } from '../dist/exports.js'
import type { Found } from '../dist/pages.js'
import { createSearch } from '../dist/search.js'
import { chapterOf, topicsOf } from '../dist/topics.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
/** Written before there was a search: what is asked, and the guide or the name that answers it. */
const questions = JSON.parse(readFileSync(new URL('questions.json', import.meta.url), 'utf8')) as {
  [asked: string]: string
}
/** The site, where `npm run site:test` has made it. */
const site = process.env['SHOAL_SITE']
const filesOf = (folder: string, ending: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith(ending))

describe('the sources of the site', () => {
  const documents = readDocuments(root)
  const all = readExports(join(root, 'packages'))

  it('list every guide, example and design note', () => {
    const namesIn = (folder: string): string[] =>
      readdirSync(join(root, 'docs', folder)).map((name) => join('docs', folder, name))
    const examples = namesIn('examples').map((folder) => join(folder, 'README.md'))
    const texts = [...namesIn('guides'), ...namesIn('design')].filter((file) => file.endsWith('.md'))
    const pages = [...texts, ...examples.filter((file) => existsSync(join(root, file)))]
    const listed = new Set(documents.map(({ file }) => file))
    expect(pages.filter((file) => !listed.has(file))).toEqual([])
  })

  it('answer each question of the search test', () => {
    const answers = new Set([...all.map(({ name }) => name), ...documents.map(({ file }) => file.slice(5, -3))])
    expect(Object.keys(questions).length).toBeGreaterThanOrEqual(40)
    expect(Object.values(questions).filter((answer) => !answers.has(answer))).toEqual([])
  })

  it('group symbols by the topics of the manuals', () => {
    const topics = new Map([...topicsOf(all)].map(([{ name, home }, topic]) => [`${home} ${name}`, topic]))
    expect(topics.get('cuda-sys cuMemAlloc')).toBe('Driver: Memory')
    expect(topics.get('nvshmem-sys nvshmem_float_put')).toBe('Remote memory access: Put')
    expect(topics.get('driver MemoryPool')).toBe('Memory pools')
    expect(topics.get('driver EventOptions')).toBe('Events')
    expect(() => chapterOf('https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__NEWER.html')).toThrow('No title')
  })

  it('include exported symbols with their members, and nothing internal', () => {
    const buffer = all.find(({ name, home }) => name === 'DeviceBuffer' && home === 'driver')
    const members = buffer?.members.map(({ name }) => name)
    expect(buffer?.entries[0]).toBe('@shoal/driver')
    expect(members).toEqual(expect.arrayContaining(['allocate', 'slice', 'toArray', '[Symbol.asyncDispose]']))
    expect(members?.filter((name) => /^[_#]/.test(name))).toEqual([])
  })
})

function describeSite(folder: string): void {
  const pages = filesOf(folder, '.html')
  const text = (page: string): string => readFileSync(join(folder, page), 'utf8')

  it('has only links with an existing target', () => {
    const ids = new Map(
      pages.map((page) => [page, new Set([...text(page).matchAll(/ id="([^"]+)"/g)].map((id) => id[1]))]),
    )
    const broken = pages.flatMap((page) =>
      [...text(page).matchAll(/ (?:href|src)="([^"]*)"/g)].flatMap(([, link = '']) => {
        if (/^(?:[a-z]+:)/.test(link)) return []
        const [path = '', id = ''] = link.split('#')
        const target = path === '' ? page : relative(folder, join(folder, dirname(page), decodeURI(path)))
        const there = statSync(join(folder, target), { throwIfNoEntry: false })?.isFile()
        return there && (id === '' || ids.get(target)?.has(decodeURIComponent(id))) ? [] : [`${page}: ${link}`]
      }),
    )
    expect(pages.length).toBeGreaterThan(300)
    expect(broken).toEqual([])
  })

  it('stays below the size limits of the site and of a page', () => {
    const sizes = filesOf(folder, '').map((file) => statSync(join(folder, file)))
    expect(sizes.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)).toBeLessThan(25e6)
    expect(pages.filter((page) => statSync(join(folder, page)).size > 400e3)).toEqual([])
  })

  it('has unique ids, and a title', () => {
    const twice = pages.flatMap((page) => {
      const ids = [...text(page).matchAll(/ id="([^"]+)"/g)].map((id) => id[1])
      return ids.length === new Set(ids).size && /<title>[^<]+ · Shoal<|<title>Shoal: /.test(text(page)) ? [] : [page]
    })
    expect(twice).toEqual([])
  })

  it('has a name for each page and each link', () => {
    const nameless = pages.filter((page) => basename(page) === '.html' || /<a [^>]*><\/a>/.test(text(page)))
    expect(nameless).toEqual([])
  })

  it('returns the answer to each question among the first three hits', async () => {
    await import(join(folder, 'search.js'))
    const search = createSearch((globalThis as unknown as { found: Found[] }).found)
    const answers = ({ title, url }: Found): string[] => [title.split('.')[0]!, url.replace(/(?:-\d+)?\.html.*/, '')]
    const unanswered = Object.entries(questions).flatMap(([asked, answer]) => {
      const found = search(asked).slice(0, 3)
      return found.some((one) => answers(one).includes(answer))
        ? []
        : [`${asked}: ${found.map(({ title }) => title).join(', ')}`]
    })
    expect(unanswered).toEqual([])
  })
}

if (site !== undefined) describe('the site', () => describeSite(site))
