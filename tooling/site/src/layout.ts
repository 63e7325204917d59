// What is around the text of each page: head, navigation, search.
import { escapeHtml, type Page, relativeUrl } from './pages.js'

/** A link of the navigation. */
export interface Place {
  readonly section: string
  readonly title: string
  readonly url: string
}

/** A whole page. `places` are the links of the navigation, in the order of their sections. */
export function htmlOf(page: Page, places: readonly Place[], version: string): string {
  const to = (url: string): string => relativeUrl(page.url, url)
  const sections = [...new Set(places.map(({ section }) => section))]
  const link = (url: string, text: string): string => {
    const current = url === page.url ? ' aria-current="page"' : ''
    return `<a href="${to(url)}"${current}>${escapeHtml(text)}</a>`
  }
  const navigation = sections.map((section) => {
    const items = places
      .filter((place) => place.section === section)
      .map(({ url, title }) => {
        const outline = isAt(page, url) ? page.outline.map((one) => `<li>${link(one.url, one.text)}</li>`) : []
        return `<li>${link(url, title)}${outline.length === 0 ? '' : `<ul>${outline.join('')}</ul>`}</li>`
      })
    const isOpen = section === page.section || (section === sections[0] && page.url === 'index.html')
    return `<details${isOpen ? ' open' : ''}><summary>${escapeHtml(section)}</summary><ul>${items.join('')}</ul></details>`
  })
  const beside = [page.previous, page.next].map((other, index) => {
    if (other === undefined) return '<span></span>'
    return `<a rel="${index === 0 ? 'prev' : 'next'}" href="${to(other.url)}">${index === 0 ? '← ' : ''}${escapeHtml(other.title)}${index === 0 ? '' : ' →'}</a>`
  })
  const title = page.url === 'index.html' ? 'Shoal: the NVIDIA multi-GPU stack for Node.js' : `${page.title} · Shoal`
  return `<!doctype html>
<html lang="en" data-root="${to('')}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title>
<meta name="description" content="${escapeHtml(`${page.title}: documentation of Shoal, the NVIDIA multi-GPU stack for Node.js and TypeScript`)}">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${to('site.css')}">
<script defer src="${to('site.js')}"></script>
</head>
<body>
<a class="skip" href="#site-text">To the text</a>
<header>
<a class="brand" href="${to('index.html')}">Shoal</a> <span class="version">${escapeHtml(version)}</span>
<search><input type="search" id="site-query" placeholder="Search" aria-label="Search" aria-controls="site-results" autocomplete="off"><div id="site-results" hidden></div></search>
<button type="button" id="site-scheme" aria-label="Light or dark">◐</button>
</header>
<nav aria-label="Pages"><details id="site-pages"><summary>Pages</summary>${navigation.join('')}</details></nav>
<main id="site-text">
${withUniqueIds(page.html)}
${page.previous === undefined && page.next === undefined ? '' : `<p class="beside">${beside.join('')}</p>`}
</main>
</body>
</html>
`
}

/** A page is at its own place of the navigation, a later part or a page below it at that of the first. */
function isAt({ url }: Page, place: string): boolean {
  const base = place.replace('.html', '')
  return url === place || url.replace(/-\d+\.html$/, '') === base || url.startsWith(`${base}/`)
}

/** Of what has the same name, as headings may and members that a class has twice, the first has the id. */
function withUniqueIds(html: string): string {
  const seen = new Map<string, number>()
  return html.replace(/ id="([^"]+)"/g, (attribute, id: string) => {
    const count = seen.get(id) ?? 0
    seen.set(id, count + 1)
    return count === 0 ? attribute : ` id="${id}-${count}"`
  })
}
