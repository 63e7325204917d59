import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript-api'
import { describe, expect, it } from 'vitest'
import { readDocuments } from '../documents.mjs'
import { entriesOf, imported, root } from '../packages.mjs'
import { chapterOf, topicsOf } from '../topics.mjs'
import { searchOf } from './search.mjs'

/** The questions were written before the search existed. Each has the guide or the name that answers it. */
const questions = JSON.parse(readFileSync(new URL('questions.json', import.meta.url), 'utf8')) as {
  [asked: string]: string
}
/** The folder of the site that `npm run site:test` has made. */
const site = process.env['SHOAL_SITE']
const filesOf = (folder: string, ending: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith(ending))

describe('the sources of the site', () => {
  it('list every guide, example and design note', () => {
    const namesIn = (folder: string): string[] =>
      readdirSync(join(root, 'docs', folder)).map((name) => join('docs', folder, name))
    const examples = namesIn('examples').map((folder) => join(folder, 'README.md'))
    const texts = [...namesIn('guides'), ...namesIn('design')].filter((file) => file.endsWith('.md'))
    const pages = [...texts, ...examples.filter((file) => existsSync(join(root, file)))]
    const listed = new Set(readDocuments().map(({ file }) => file))
    expect(pages.filter((file) => !listed.has(file))).toEqual([])
  })

  it('have at least 56 questions, whose guides exist', () => {
    const guides = readdirSync(join(root, 'docs/guides')).map((name) => `guides/${name.slice(0, -3)}`)
    const asked = new Set(Object.values(questions))
    expect(Object.keys(questions).length).toBeGreaterThanOrEqual(56)
    expect([...asked].filter((answer) => answer.startsWith('guides/') && !guides.includes(answer))).toEqual([])
  })

  it.each(imported)('configure TypeDoc for every entry point of %s', (folder) => {
    const { entryPoints } = JSON.parse(readFileSync(join(root, 'packages', folder, 'typedoc.json'), 'utf8'))
    expect(entryPoints).toEqual(entriesOf(folder).map(({ types }) => types))
  })

  it('group exports by the chapters of the manuals', () => {
    const link = 'https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html'
    const base = { file: '', text: '', isClass: false, link: undefined }
    const raw = { ...base, name: 'cuMemAlloc', home: 'cuda-sys', file: 'driver/generated/functions/memory.gen', link }
    const safe = { ...base, name: 'allocate', home: 'driver', text: 'Allocates (`cuMemAlloc`).' }
    const options = { ...base, name: 'AllocateOptions', home: 'driver', file: 'stream/options' }
    expect([...topicsOf([raw, safe, options]).values()]).toEqual(['Driver: Memory', 'Memory', 'Streams'])
    expect(() => chapterOf(link.replace('MEM', 'NEWER'))).toThrow('No title')
  })

  it('have a title for each chapter that a raw package links to', () => {
    const folders = readdirSync(join(root, 'packages')).filter((name) => name.endsWith('-sys'))
    const sources = folders.flatMap((name) => {
      const folder = join(root, 'packages', name, 'src')
      return filesOf(folder, '.gen.ts').map((file) => readFileSync(join(folder, file), 'utf8'))
    })
    const links = new Set(sources.join('').match(/https:\/\/docs\.nvidia\.com\/[^\s)*]+\.html/g))
    expect(links.size).toBeGreaterThan(50)
    for (const link of links) expect(chapterOf(link)).toMatch(/^[A-Z]/)
  })
})

function describeSite(folder: string): void {
  const pages = filesOf(folder, '.html')
  const texts = new Map(pages.map((page) => [page, readFileSync(join(folder, page), 'utf8')]))
  const idsOf = (text: string): string[] => [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!)
  const ids = new Map([...texts].map(([page, text]) => [page, new Set(idsOf(text))]))
  /** Returns the file of a link. Links have no file extension. */
  const fileOf = (path: string): string | undefined =>
    [path, `${path}.html`, join(path, 'index.html')].find((file) =>
      statSync(join(folder, file), { throwIfNoEntry: false })?.isFile(),
    )

  it('has only links with an existing target', () => {
    const broken = [...texts].flatMap(([page, text]) =>
      [...text.matchAll(/ (?:href|src)="([^"]*)"/g)].flatMap(([, link = '']) => {
        if (/^[a-z]+:/.test(link)) return []
        const [path = '', id = ''] = link.split('#')
        const target = path === '' ? page : fileOf(decodeURI(path).slice(1))
        const isThere = target !== undefined && (id === '' || ids.get(target)?.has(decodeURIComponent(id)))
        return isThere ? [] : [`${page}: ${link}`]
      }),
    )
    expect(pages.length).toBeGreaterThan(300)
    expect([...new Set(broken)]).toEqual([])
  })

  it('describes every export of every entry point', () => {
    const all = imported.flatMap((name) => entriesOf(name).map(({ types }) => join(root, 'packages', name, types)))
    const options = { module: ts.ModuleKind.NodeNext, skipLibCheck: true, types: [], lib: ['lib.esnext.d.ts'] }
    const program = ts.createProgram(all, options)
    const checker = program.getTypeChecker()
    const exported = all.flatMap((file) => {
      const module = checker.getSymbolAtLocation(program.getSourceFile(file)!)!
      const isInternal = (symbol: ts.Symbol): boolean =>
        (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol)
          .getJsDocTags(checker)
          .some(({ name }) => name === 'internal')
      return checker
        .getExportsOfModule(module)
        .filter((symbol) => !isInternal(symbol))
        .map(({ name }) => name)
    })
    const reference = [...texts].filter(([page]) => page.startsWith('packages/')).map(([, text]) => text)
    const headings = reference.flatMap((text) => [
      ...text.matchAll(/<h[123] [^>]*>(?:<s>|<strong>|abstract )*([\w$]+)(?:\(\))?</g),
    ])
    const described = new Set(headings.map(([, name]) => name))
    expect(exported.length).toBeGreaterThan(3000)
    expect([...new Set(exported)].filter((name) => !described.has(name))).toEqual([])
  })

  it('has at most 25 MB, and pages of at most 400 kB', () => {
    const sizes = filesOf(folder, '').map((file) => statSync(join(folder, file)))
    expect(sizes.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0)).toBeLessThan(25e6)
    expect(pages.filter((page) => statSync(join(folder, page)).size > 400e3)).toEqual([])
  })

  it('has unique ids, and a title', () => {
    const wrong = [...texts].filter(([, text]) => {
      const all = idsOf(text)
      return all.length !== new Set(all).size || !/<title>[^<#]+<\/title>/.test(text)
    })
    expect(wrong.map(([page]) => page)).toEqual([])
  })

  it('answers each question on one of the first three pages that it finds', async () => {
    const search = await searchOf(folder)
    const unanswered = Object.entries(questions).flatMap(([asked, answer]) => {
      const found = search(asked).map(({ id, title }) => ({
        page: id.replace(/#.*/, ''),
        name: title.replace('()', ''),
      }))
      const firstPages = [...new Set(found.map(({ page }) => page))].slice(0, 3)
      const first = found.slice(
        0,
        Math.max(...firstPages.map((page) => found.findIndex((one) => one.page === page))) + 1,
      )
      return first.some(({ page, name }) => page === `/${answer}` || page.endsWith(`/${answer}`) || name === answer)
        ? []
        : [`${asked}: ${firstPages.join(', ')}`]
    })
    expect(unanswered).toEqual([])
  })
}

if (site !== undefined) describe('the site', () => describeSite(site))
