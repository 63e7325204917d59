// Markdown to HTML: highlighted code, headings with ids, links to where the pages are.
import MarkdownIt from 'markdown-it'
import { createHighlighter } from 'shiki'
import { escapeHtml, slug } from './pages.js'

const languages = ['bash', 'c', 'cpp', 'console', 'javascript', 'json', 'jsonc', 'python', 'typescript', 'yaml', 'make']
const themes = { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' }
const highlighter = await createHighlighter({ langs: languages, themes: Object.values(themes) })

export interface Heading {
  readonly level: number
  readonly id: string
  readonly text: string
  /** The line of the source that it stands in, from 0. */
  readonly line: number
}

/** Where a link of a document leads, as the page has to write it; undefined makes it plain text. */
export type ResolveLink = (target: string) => string | undefined

/** Code as HTML, in both colour schemes. A block can be scrolled by keyboard. */
export function highlight(code: string, language: string): string {
  const known = { sh: 'bash', ts: 'typescript', js: 'javascript', cu: 'cpp', cc: 'cpp', h: 'c' }[language] ?? language
  const lang = highlighter.getLoadedLanguages().includes(known) ? known : 'text'
  const html = highlighter.codeToHtml(code.trimEnd(), { lang, themes, defaultColor: 'light-dark()' })
  // The page has its own background.
  return html.replace(/^<pre[^>]*>/, '<pre tabindex="0">')
}

const markdown = new MarkdownIt({ html: false, highlight: (code, info) => highlight(code, info.split(' ')[0] ?? '') })
Object.assign(markdown.renderer.rules, {
  heading_open: (tokens, at) => `<${tokens[at]!.tag} id="${slug(tokens[at + 1]!.content.replaceAll('`', ''))}">`,
  table_open: () => '<div class="wide" tabindex="0"><table>',
  table_close: () => '</table></div>',
  // A heading cell of a table without text says nothing to who listens.
  th_open: (tokens, at) => (tokens[at + 1]!.content === '' ? '<td>' : '<th scope="col">'),
  th_close: (tokens, at) => (tokens[at - 1]!.content === '' ? '</td>' : '</th>'),
  link_open: (tokens, at, _options, env: Environment) => {
    const target = env.resolve(decodeURI(tokens[at]!.attrGet('href') ?? ''))
    env.links.push(target !== undefined)
    return target === undefined ? '' : `<a href="${escapeHtml(target)}">`
  },
  link_close: (_tokens, _at, _options, env: Environment) => (env.links.pop() ? '</a>' : ''),
  image: (tokens, at, _options, env: Environment) => env.resolve(tokens[at]!.attrGet('src') ?? '') ?? '',
} satisfies MarkdownIt['renderer']['rules'])

interface Environment {
  readonly resolve: ResolveLink
  /** Of the links that have begun: whether each leads anywhere. */
  readonly links: boolean[]
}

export function render(text: string, resolve: ResolveLink): string {
  const environment: Environment = { resolve, links: [] }
  return markdown.render(text, environment)
}

export function headingsOf(text: string): Heading[] {
  const tokens = markdown.parse(text, {})
  return tokens.flatMap(({ type, tag, map }, at) => {
    if (type !== 'heading_open') return []
    const content = tokens[at + 1]!.content.replaceAll('`', '')
    return [{ level: Number(tag[1]), id: slug(content), text: content, line: map![0] }]
  })
}

/** The words of a text, for the search. */
export function wordsOf(text: string): string {
  return text
    .replace(/```[\s\S]*?```/g, ' ')
    .replace(/\]\([^)]*\)/g, ' ')
    .replace(/[`*#|[\]>]+/g, ' ')
    .replace(/\s+/g, ' ')
}
