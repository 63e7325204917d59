import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { defineConfig } from 'vitepress'
import { readDocuments, resolveLink } from '../documents.mjs'
import { root } from '../packages.mjs'
import { searchSettings } from '../search.mjs'

const repository = 'https://github.com/shoal-js/shoal'
const { version } = JSON.parse(readFileSync(join(root, 'packages/driver/package.json'), 'utf8'))
const documents = readDocuments()
const pages = new Map(documents.map(({ file, page }) => [file, page]))
const abouts = new Map(documents.map(({ page, about }) => [page, about.replace(/\[([^\]]*)\]\([^)]*\)|`/g, '$1')]))
const aboutOf = (path) => abouts.get(relative(join(root, 'tooling/site/build/pages'), path))
const files = new Map(documents.map(({ file, page }) => [page, file]))

/** Returns the id of a heading, as GitHub makes it. */
const slugify = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

/** Makes links of documents lead to pages of the site or to files of the repository. */
function followLinks(markdown) {
  markdown.core.ruler.push('shoal-links', ({ tokens, env }) => {
    const file = files.get(env.relativePath)
    if (file === undefined) return
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const name = token.type === 'image' ? 'src' : 'href'
      const target = token.attrGet(name)
      if (target === null) continue
      const isImage = token.type === 'image'
      token.attrSet(
        name,
        isImage ? `/${target}` : resolveLink(pages, `${repository}/blob/main`, file, decodeURI(target)),
      )
    }
  })
  // A heading needs text for screen readers, also above the names of rows.
  markdown.core.ruler.push('shoal-headings', ({ tokens, Token }) => {
    for (const [index, { type }] of tokens.entries()) {
      const cell = tokens[index + 1]
      if (type !== 'th_open' || cell.content !== '') continue
      const text = new Token('html_inline', '', 0)
      text.content = '<span class="visually-hidden">Row</span>'
      cell.children = [text]
    }
  })
  // Braces are text here, not expressions of Vue.
  const text = markdown.renderer.rules.text
  markdown.renderer.rules.text = (...all) => text(...all).replaceAll('{{', '&#123;&#123;')
}

/** Maps each pair of colours, for light and dark pages, to a class. This makes code four times smaller. */
const colours = new Map()
const classOf = (style) => {
  if (!colours.has(style)) colours.set(style, `c${colours.size}`)
  return colours.get(style)
}
const plain = '--shiki-light:#0E1116;--shiki-dark:#F0F3F6'
const classesOfColours = {
  name: 'shoal-colours',
  line(node) {
    const merged = []
    for (const { properties, children } of node.children) {
      const last = merged.at(-1)
      const [{ value }] = children
      if (last !== undefined && (last.style === properties.style || value.trim() === '')) last.value += value
      else merged.push({ style: properties.style, value })
    }
    node.children = merged.map(({ style, value }) => {
      const text = { type: 'text', value }
      if (style === undefined || style === plain) return text
      return { type: 'element', tagName: 'span', properties: { class: classOf(style) }, children: [text] }
    })
  },
}

/** Makes a link to a heading as short as possible, because there are ten thousand. As HTML it is no part of a title. */
function permalink(slug, _options, state, index) {
  const link = new state.Token('html_inline', '', 0)
  link.content = `<a class="header-anchor" href="#${slug}">#</a>`
  state.tokens[index + 1].children.push(link)
}

/** Returns the part of a page that the search reads: names and words, without headings that only group entries. */
function searchable(text, env, markdown) {
  const html = markdown.render(text, env)
  if (env.frontmatter?.search === false) return ''
  const named = html.replaceAll(/<h\d id="part-[^>]*>.*?<\/h\d>/g, '')
  return /^packages\/[\w-]+-sys\//.test(env.relativePath)
    ? named.replaceAll(/(<\/h3>)[\s\S]*?(?=<h\d|$)/g, '$1')
    : named
}

/** Shortens the attributes that tie the theme's styles to its elements. They are a tenth of each page. */
function shortenScopes(folder) {
  const short = new Map()
  const shortOf = (long) => {
    if (!short.has(long)) short.set(long, `data-v-${short.size.toString(36)}`)
    return short.get(long)
  }
  for (const name of readdirSync(folder, { recursive: true })) {
    if (!/\.(?:css|html|js)$/.test(name)) continue
    const text = readFileSync(join(folder, name), 'utf8')
    const shortened = text.replaceAll(/data-v-[0-9a-f]{8}/g, shortOf)
    if (shortened !== text) writeFileSync(join(folder, name), shortened)
  }
}

// biome-ignore lint/style/noDefaultExport: VitePress asks for one
export default defineConfig({
  title: 'Shoal',
  description: 'The NVIDIA multi-GPU stack for Node.js and TypeScript',
  srcDir: 'build/pages',
  cacheDir: 'build/cache',
  cleanUrls: true,
  metaChunk: true,
  router: { prefetchLinks: false },
  markdown: {
    html: false,
    anchor: { slugify, permalink, tabIndex: false },
    config: followLinks,
    codeTransformers: [classesOfColours],
    languageAlias: { cu: 'cpp' },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  transformPageData({ relativePath, frontmatter }) {
    // The reference has no order to read it in.
    if (relativePath.startsWith('packages/')) Object.assign(frontmatter, { prev: false, next: false })
  },
  // The theme gives each page a main landmark but the first one.
  transformHtml: (html) => html.replace('<div class="VPHome"', '<div role="main" class="VPHome"'),
  buildEnd({ outDir }) {
    const [style] = readdirSync(join(outDir, 'assets')).filter((name) => /^style\..*\.css$/.test(name))
    const rules = [...colours].map(([colour, name]) => `.vp-code .${name}{${colour}}`)
    appendFileSync(join(outDir, 'assets', style), rules.join(''))
    shortenScopes(outDir)
  },
  themeConfig: {
    nav: [
      { text: 'Guides', link: '/guides/' },
      { text: 'Reference', link: '/packages/driver/' },
      { text: version, link: `${repository}/releases` },
    ],
    sidebar: JSON.parse(readFileSync(join(root, 'tooling/site/build/sidebar.json'), 'utf8')),
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository }],
    search: {
      provider: 'local',
      options: {
        miniSearch: searchSettings(aboutOf),
        detailedView: true,
        _render: searchable,
      },
    },
  },
})
