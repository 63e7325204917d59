// The pages of the reference: one a package, one a topic of it, one a class.
import { packageOrder } from './documents.js'
import type { Docs, Export, Kind } from './exports.js'
import { type ResolveLink, render } from './markdown.js'
import { escapeHtml, type Found, type Page, relativeUrl, slug } from './pages.js'
import { topicsOf } from './topics.js'

const section = 'Reference'
/** What is listed after what, within a topic. */
const kinds: readonly Kind[] = ['class', 'function', 'constant', 'interface', 'type']
const kindTitles: { readonly [kind in Kind]: string } = {
  class: 'Classes',
  function: 'Functions',
  constant: 'Constants',
  interface: 'Interfaces',
  type: 'Types',
}
/** How many entries a page has at most. */
const most = 110

/** A page without the list of topics that all of a package have. */
type Content = Omit<Page, 'outline'>

export class Reference {
  readonly #all: readonly Export[]
  readonly #topics: ReadonlyMap<Export, string>
  readonly #urls = new Map<Export, string>()
  readonly #byName = new Map<string, Export[]>()
  /** Links in docstrings that lead nowhere. */
  readonly broken: string[] = []

  constructor(all: readonly Export[]) {
    this.#all = all
    this.#topics = topicsOf(all)
    for (const one of all) this.#byName.set(one.name, [...(this.#byName.get(one.name) ?? []), one])
    for (const folder of packageOrder) {
      for (const page of this.#topicPages(folder)) {
        for (const one of page.exports) {
          const own = hasPage(one)
          this.#urls.set(one, own ? `packages/${folder}/${one.name}.html` : `${page.url}#${one.name}`)
        }
      }
    }
  }

  /** The topics of a package in the order of the alphabet, the long ones on several pages. */
  #topicPages(folder: string): { title: string; url: string; exports: Export[] }[] {
    const byTopic = new Map<string, Export[]>()
    for (const one of this.#all.filter(({ home }) => home === folder)) {
      const topic = this.#topics.get(one)!
      byTopic.set(topic, [...(byTopic.get(topic) ?? []), one])
    }
    const sorted = [...byTopic].sort(([one], [other]) => one.localeCompare(other))
    return sorted.flatMap(([topic, exports]) => {
      const rank = ({ kind }: Export): number => kinds.indexOf(kind)
      const ordered = exports.sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name))
      const count = Math.ceil(ordered.length / most)
      const each = Math.ceil(ordered.length / count)
      return Array.from({ length: count }, (_, index) => ({
        title: count === 1 ? topic : `${topic} (${index + 1} of ${count})`,
        url: `packages/${folder}/${slug(topic).replace(/-+/g, '-')}${index === 0 ? '' : `-${index + 1}`}.html`,
        exports: ordered.slice(index * each, (index + 1) * each),
      }))
    })
  }

  /** The pages of a package, given those of its text. */
  pages(folder: string, [first, ...further]: readonly Page[]): Page[] {
    const topics = this.#topicPages(folder)
    const main = { ...first!, html: `${first!.html}${this.#overview(folder, first!.url, topics)}` }
    const own = topics.flatMap((topic) => topic.exports.filter(hasPage).map((one) => this.#classPage(one, topic)))
    const outline = topics.map(({ title, url }) => ({ url, text: title }))
    const all = [main, ...further, ...topics.map((topic) => this.#topicPage(folder, topic)), ...own]
    return all.map((page) => ({ ...page, outline }))
  }

  /** What the search finds: exports, and members of classes. */
  found(): Found[] {
    return this.#all.flatMap((one) => {
      const raw = one.home.endsWith('-sys')
      const [url = ''] = [this.#urls.get(one)]
      const kind = `${one.kind}, ${one.entries[0]}`
      const weight = raw ? 0.6 : one.kind === 'class' ? 2 : 1
      const item = { url, title: one.name, kind, text: raw ? '' : plain(one.docs.text), weight }
      if (!hasPage(one)) return [item]
      const members = one.members.map((member) => ({
        url: `${url}#${idOf(member.name)}`,
        title: `${one.name}.${member.name}`,
        kind: `member, ${one.entries[0]}`,
        text: plain(member.docs.text),
        weight: 1.3,
      }))
      return [item, ...members]
    })
  }

  #overview(
    folder: string,
    page: string,
    topics: readonly { title: string; url: string; exports: Export[] }[],
  ): string {
    const link = (one: Export): string =>
      `<a href="${relativeUrl(page, this.#urls.get(one)!)}"><code>${one.name}</code></a>`
    const isRaw = folder.endsWith('-sys')
    const rows = topics.map(({ title, url, exports }) => {
      const names = isRaw ? `${exports.length} names` : exports.map(link).join(' ')
      return `<tr><th scope="row"><a href="${relativeUrl(page, url)}">${escapeHtml(title)}</a></th><td>${names}</td></tr>`
    })
    const passedOn = this.#all.filter(
      ({ home, entries }) => home !== folder && entries.some((entry) => `${entry}/`.startsWith(`@shoal/${folder}/`)),
    )
    const others =
      passedOn.length === 0 || isRaw
        ? ''
        : `<h2 id="passed-on">Passed on from other packages</h2><p>${passedOn.map(link).join(' ')}</p>`
    if (rows.length === 0) return others
    return `<h2 id="reference">Reference</h2>${table(rows)}${others}`
  }

  #topicPage(folder: string, { title, url, exports }: { title: string; url: string; exports: Export[] }): Content {
    const groups = kinds.filter((kind) => exports.some((one) => one.kind === kind))
    const body = groups.map((kind) => {
      const items = exports
        .filter((one) => one.kind === kind)
        .map((one) => {
          const head = { id: one.name, name: one.name, docs: one.docs, signatures: one.signatures }
          const full = hasPage(one)
            ? `<p><a href="${relativeUrl(url, this.#urls.get(one)!)}">All of ${one.name}</a></p>`
            : this.#fields(one, url)
          return this.#item(head, one, url, `${importLine(one)}${full}`)
        })
      return `<h2 id="${slug(kindTitles[kind])}">${kindTitles[kind]}</h2>${items.join('')}`
    })
    const up = `<p><a href="${relativeUrl(url, `packages/${folder}.html`)}">@shoal/${folder}</a></p>`
    return {
      url,
      title: `${title} · @shoal/${folder}`,
      section,
      html: `${up}<h1>${escapeHtml(title)}</h1>${body.join('')}`,
    }
  }

  #classPage(one: Export, topic: { title: string; url: string }): Content {
    const url = this.#urls.get(one)!
    const groups = (['Construction', 'Methods', 'Properties'] as const).filter((group) =>
      one.members.some((member) => member.group === group),
    )
    const members = groups.map((group) => {
      const items = one.members
        .filter((member) => member.group === group)
        .map((member) => this.#item({ ...member, id: idOf(member.name) }, one, url))
      return `<h2 id="${group.toLowerCase()}">${group}</h2>${items.join('')}`
    })
    const up = [`packages/${one.home}.html`, topic.url].map(
      (to, index) =>
        `<a href="${relativeUrl(url, to)}">${index === 0 ? `@shoal/${one.home}` : escapeHtml(topic.title)}</a>`,
    )
    const head = `<p>${up.join(' › ')}</p><h1>${one.name}</h1>${importLine(one)}${this.#code(one.signatures, one, url)}${this.#docs(one.docs, one, url)}`
    return {
      url,
      title: `${one.name} · @shoal/${one.home}`,
      section,
      html: `${head}${members.join('')}`,
    }
  }

  /** The fields of an interface. */
  #fields(one: Export, page: string): string {
    if (one.members.length === 0) return ''
    const rows = one.members.map(
      ({ signatures, docs }) =>
        `<dt>${this.#inline(signatures.join('\n'), one, page)}</dt><dd>${this.#docs(docs, one, page)}</dd>`,
    )
    return `<dl>${rows.join('')}</dl>`
  }

  #item(
    { id, name, docs, signatures }: { id: string; name: string; docs: Docs; signatures: readonly string[] },
    one: Export,
    page: string,
    more = '',
  ): string {
    const first = /^[\s\S]*?(?:\.(?=\s|$)|$)/.exec(docs.text.trim())?.[0] ?? ''
    const short = plain(first)
    const summary = `<summary><code>${escapeHtml(name)}</code> <span>${escapeHtml(short)}</span></summary>`
    return `<details class="item" id="${escapeHtml(id)}">${summary}<div>${this.#code(signatures, one, page)}${this.#docs(docs, one, page)}${more}</div></details>`
  }

  #code(signatures: readonly string[], one: Export, page: string): string {
    return `<pre tabindex="0">${this.#inline(signatures.join('\n'), one, page)}</pre>`
  }

  /** Code in which the names of types lead to their pages. */
  #inline(code: string, one: Export, page: string): string {
    const linked = escapeHtml(code).replace(/\b[A-Za-z_]\w+\b/g, (name) => {
      if (name === one.name || !/^(?:[A-Z]|cu[A-Z]|cuda[A-Z]|nccl[A-Z]|nvshmem)/.test(name)) return name
      const url = this.#urlOf(name, one)
      return url === undefined ? name : `<a href="${relativeUrl(page, url)}">${name}</a>`
    })
    return `<code>${linked}</code>`
  }

  #docs({ text, tags }: Docs, one: Export, page: string): string {
    const resolve: ResolveLink = (target) => (target.startsWith('page:') ? relativeUrl(page, target.slice(5)) : target)
    const body = (markdown: string): string => render(this.#withLinks(markdown, one), resolve)
    const example = tags
      .filter(({ name }) => name === 'example')
      .map(({ text }) => body(text.includes('```') ? text : `\`\`\`ts\n${text}\n\`\`\``))
    const rows = tags
      .filter(({ name }) => name !== 'example')
      .map((tag) => {
        const [, parameter = '', rest = tag.text] =
          tag.name === 'param' ? (/^(\S+)\s+(?:- )?([\s\S]*)$/.exec(tag.text) ?? []) : []
        const label =
          parameter === '' ? `<span>${escapeHtml(tag.name)}</span>` : `<code>${escapeHtml(parameter)}</code>`
        return `<dt>${label}</dt><dd>${tag.name === 'see' ? `<a href="${escapeHtml(rest.trim())}">the vendor's manual</a>` : body(rest)}</dd>`
      })
    return `${body(text)}${rows.length === 0 ? '' : `<dl>${rows.join('')}</dl>`}${example.join('')}`
  }

  #withLinks(text: string, one: Export): string {
    return text.replace(
      /\{@link(?:code|plain)?\s+([^\s|}]+)\s*\|?\s*([^}]*)\}/g,
      (_, target: string, label: string) => {
        const [name = '', member] = target.replace(/[()]/g, '').split(/[.#]/)
        const isOwn = member === undefined && one.members.some((each) => each.name === name)
        const url = isOwn
          ? this.#memberUrl(one, name)
          : member === undefined
            ? this.#urlOf(name, one)
            : this.#memberUrl(this.#exportOf(name, one), member)
        if (url === undefined) this.broken.push(`${one.entries[0]} ${one.name}: {@link ${target}}`)
        const shown = label.trim() === '' ? `\`${target}\`` : label.trim()
        return url === undefined ? shown : `[${shown}](page:${url})`
      },
    )
  }

  #memberUrl(one: Export | undefined, name: string): string | undefined {
    const url = one && this.#urls.get(one)
    if (url === undefined || !one!.members.some((member) => member.name === name)) return undefined
    return hasPage(one!) ? `${url}#${idOf(name)}` : url
  }

  #urlOf(name: string, from: Export): string | undefined {
    const one = this.#exportOf(name, from)
    return one && this.#urls.get(one)
  }

  /** What a name means to a package: what it has itself, or what it can import. */
  #exportOf(name: string, from: Export): Export | undefined {
    const all = this.#byName.get(name) ?? []
    const near = (one: Export): number =>
      one.home === from.home
        ? 0
        : one.entries.some((entry) => entry.startsWith(`@shoal/${from.home}`))
          ? 1
          : 2 + packageOrder.indexOf(one.home)
    return all.toSorted((one, other) => near(one) - near(other))[0]
  }
}

/** Classes have a page each; what else there is stands on that of its topic. */
function hasPage({ kind, home }: Export): boolean {
  return kind === 'class' && !home.endsWith('-sys')
}

function importLine({ name, kind, entries }: Export): string {
  const type = kind === 'interface' || kind === 'type' ? 'type ' : ''
  const [first, ...others] = entries
  const also = others.length === 0 ? '' : `<p>Also in ${others.map((entry) => `<code>${entry}</code>`).join(', ')}.</p>`
  return `<pre tabindex="0"><code>import { ${type}${escapeHtml(name)} } from '${first}'</code></pre>${also}`
}

function table(rows: readonly string[]): string {
  return `<div class="wide" tabindex="0"><table>${rows.join('')}</table></div>`
}

function idOf(member: string): string {
  return member.replace(/[^\w]+/g, '-')
}

/** Text without its markup. */
function plain(text: string): string {
  return text
    .replace(/\{@link\s+([^\s|}]+)[^}]*\}/g, '$1')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .replace(/\s+/g, ' ')
}
