// What runs in the browser: the search, the colour scheme, entries that open when a link leads to them.
/// <reference lib="dom" />
import type { Found } from './pages.js'
import { createSearch } from './search.js'

const root = document.documentElement
const base = root.dataset['root'] ?? ''
const query = document.querySelector<HTMLInputElement>('#site-query')!
const results = document.querySelector<HTMLElement>('#site-results')!
const scheme = document.querySelector<HTMLButtonElement>('#site-scheme')!
const pages = document.querySelector<HTMLDetailsElement>('#site-pages')!

const remembered = localStorage.getItem('scheme')
if (remembered !== null) root.dataset['scheme'] = remembered
scheme.addEventListener('click', () => {
  const isDark =
    getComputedStyle(root).colorScheme === 'dark' ||
    (root.dataset['scheme'] === undefined && matchMedia('(prefers-color-scheme: dark)').matches)
  root.dataset['scheme'] = isDark ? 'light' : 'dark'
  localStorage.setItem('scheme', root.dataset['scheme'])
})

const wide = matchMedia('(min-width: 62rem)')
const fold = (): void => {
  pages.open = wide.matches
}
wide.addEventListener('change', fold)
fold()

/**
 * What the search knows is loaded when somebody is about to search; by a script, so that pages work without a server
 * too.
 */
let search: Promise<(text: string) => Found[]> | undefined
function load(): Promise<(text: string) => Found[]> {
  search ??= new Promise((resolve) => {
    const script = document.createElement('script')
    script.src = `${base}search.js`
    script.addEventListener('load', () => resolve(createSearch((globalThis as unknown as { found: Found[] }).found)))
    document.head.append(script)
  })
  return search
}

async function show(): Promise<void> {
  const text = query.value.trim()
  const found = text === '' ? [] : (await load())(text).slice(0, 12)
  if (text !== query.value.trim()) return
  results.replaceChildren(
    ...found.map(({ url, title, kind }) => {
      const link = document.createElement('a')
      const small = document.createElement('span')
      link.href = `${base}${url}`
      small.textContent = kind
      link.append(title, small)
      return link
    }),
  )
  if (text !== '' && found.length === 0)
    results.append(Object.assign(document.createElement('p'), { textContent: 'Nothing found.' }))
  results.hidden = text === ''
}

query.addEventListener('focus', load)
query.addEventListener('input', show)
document.addEventListener('keydown', (event) => {
  const links = [...results.querySelectorAll('a')]
  const at = links.indexOf(document.activeElement as HTMLAnchorElement)
  const isTyping = document.activeElement === query
  if (event.key === '/' && !isTyping) query.focus()
  else if (event.key === 'Escape') results.hidden = true
  else if (event.key === 'Enter' && isTyping && links[0]) links[0].click()
  else if (event.key === 'ArrowDown' && (isTyping || at >= 0)) links[at + 1]?.focus()
  else if (event.key === 'ArrowUp' && at >= 0) (links[at - 1] ?? query).focus()
  else return
  event.preventDefault()
})
document.addEventListener('click', ({ target }) => {
  if (!(target as Element).closest('search')) results.hidden = true
})

function open(): void {
  const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (!(entry instanceof HTMLDetailsElement)) return
  entry.open = true
  entry.scrollIntoView()
}
addEventListener('hashchange', open)
open()
