// TypeDoc's plugin for the reference. Each export appears in one place, each topic and each class of a safe package has
// a page, and entries are short.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Application, Comment, Converter, DeclarationReflection, ReflectionGroup, ReflectionKind } from 'typedoc'
import { MarkdownPageEvent, MarkdownTheme, MarkdownThemeContext, MemberRouter } from 'typedoc-plugin-markdown'
import { entriesOf, root } from './packages.mjs'
import { topicsOf } from './topics.mjs'

/** The order of the kinds of entries within a topic. */
const groups = [
  ['Classes', ReflectionKind.Class],
  ['Functions', ReflectionKind.Function],
  ['Constants', ReflectionKind.Variable],
  ['Interfaces', ReflectionKind.Interface],
  ['Types', ReflectionKind.TypeAlias],
]
/** The most entries of a page. */
const most = 110

/** The specifiers that programs import each export from, its own package's first. The key is package, file and name. */
const specifiers = new Map()
/** The specifiers that programs import each class from. */
const imports = new Map()
/** Returns the folder of a package's topic pages. */
const folderOf = (module) => module.name.replace('@shoal/', '')
const isRaw = (module) => module.name.endsWith('-sys')
const slug = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')

export function load(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    // All packages together check the links once. Declarations that are inlined into their only use stay without a
    // name.
    app.options.setValue('validation', { notExported: false })
    leaveOut(project)
  })
  app.on(Application.EVENT_PROJECT_REVIVE, arrange)
  app.renderer.defineRouter('topics', TopicRouter)
  app.renderer.defineTheme('shoal', ShoalTheme)
  app.renderer.on(MarkdownPageEvent.END, (page) => {
    // Headings that are not names get ids that no name can have. Rows of tables get their ids without HTML.
    let count = 0
    const entries = imports.get(page.model)
    if (entries !== undefined) page.contents = withImport(page.contents, page.model.name, entries)
    page.contents = page.contents
      .replaceAll(/<a id="([^"]+)"><\/a> (`[^`]+`)/g, '$2 {#$1}')
      .replaceAll(/^#### (?:Properties|Type Declaration)\n\n/gm, '')
      .replaceAll(/^#{2,5} [A-Z][\w ]+$/gm, (heading) => `${heading} {#part-${(count += 1)}}`)
  })
}

const keyOf = ({ packageName, packagePath, qualifiedName }) => `${packageName} ${packagePath} ${qualifiedName}`
const isSymbol = /^\[(?:dispose|asyncDispose|iterator|asyncIterator)\]$/
/** Members named by other symbols, or with an underscore, are internal. */
const isOwnUse = ({ name }) => /^(?:_[^_]|__#|#|\[)/.test(name) && !isSymbol.test(name)

const nameOf = (path) => path.replace(/^.*?\bdist\b\/?/, '').replace(/(?:^index|\/index)?(?:\.d\.ts)?$/, '')

/** Removes exports of other packages and internal members. Records the specifiers of each export. */
function leaveOut(project) {
  const entries = entriesOf(folderOf({ name: project.packageName }))
  for (const module of [...(project.children ?? [])]) {
    const { specifier } = entries.find(({ types }) => nameOf(types) === nameOf(module.name))
    for (const child of [...(module.children ?? [])]) {
      const target = child.isReference() ? child.getTargetReflectionDeep() : child
      const id = project.getSymbolIdFromReflection(target)
      const known = specifiers.get(keyOf(id)) ?? []
      specifiers.set(keyOf(id), id.packageName === project.packageName ? [...known, specifier] : known)
      if (id.packageName !== project.packageName) passedOn.push({ specifier, key: keyOf(id) })
      if (target !== child || id.packageName !== project.packageName) foreign.push(child)
    }
  }
  for (const child of foreign.splice(0)) project.removeReflection(child)
  const own = project.getReflectionsByKind(ReflectionKind.ClassOrInterface).flatMap(({ children }) => children ?? [])
  for (const member of own) {
    if (isOwnUse(member)) project.removeReflection(member)
    else if (isSymbol.test(member.name)) member.name = `[Symbol.${member.name.slice(1, -1)}]`
  }
}
const foreign = []
const passedOn = []

function withImport(text, name, [first, ...others]) {
  const also = others.length === 0 ? '' : `\n\nAlso in ${others.map((entry) => `\`${entry}\``).join(', ')}.`
  return text.replace(/^# .*$/m, (title) => `${title}\n\n\`\`\`ts\nimport { ${name} } from '${first}'\n\`\`\`${also}`)
}

/** Groups the exports of each package by topic instead of by entry file. */
function arrange(project) {
  const sections = new Map()
  const all = project.children.flatMap((module) => {
    const home = folderOf(module)
    return module.children.flatMap((entry) => (entry.children ?? []).map((reflection) => factsOf(reflection, home)))
  })
  const topics = topicsOf(all)
  for (const module of project.children) {
    const home = folderOf(module)
    const entries = [...module.children]
    const byTopic = new Map()
    for (const one of all.filter((each) => each.home === home))
      byTopic.set(topics.get(one), [...(byTopic.get(topics.get(one)) ?? []), one])
    const pages = [...byTopic].sort(([one], [other]) => one.localeCompare(other)).flatMap(partsOf)
    for (const [title, ones] of pages) add(title, ones, module)
    for (const entry of entries) project.removeReflection(entry)
    module.groups = [groupOf('Topics', module, module.children)]
  }

  function partsOf([topic, ones]) {
    const rank = ({ reflection }) => groups.findIndex(([, kind]) => kind === reflection.kind)
    const ordered = ones.sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name))
    const count = Math.ceil(ordered.length / most)
    const each = Math.ceil(ordered.length / count)
    return Array.from({ length: count }, (_, index) => [
      count === 1 ? topic : `${topic} (${index + 1} of ${count})`,
      ordered.slice(index * each, (index + 1) * each),
    ])
  }

  function add(title, ones, module) {
    const reflections = ones.map(({ reflection }) => reflection)
    const topic = new DeclarationReflection(title, ReflectionKind.Module, module)
    project.registerReflection(topic, undefined, undefined)
    module.addChild(topic)
    for (const reflection of reflections) {
      reflection.parent = topic
      reflection.sources = undefined
      topic.addChild(reflection)
    }
    // All C functions of a topic are in one chapter of the vendor's manual.
    const link = ones.find((one) => one.link !== undefined && isRaw(module))?.link
    const texts = [importsOf(ones), ...(link === undefined ? [] : [`[The vendor's manual](${link})`])]
    topic.comment = new Comment([{ kind: 'text', text: texts.join('\n\n') }])
    for (const { reflection, entries } of ones.filter(({ isClass }) => isClass)) imports.set(reflection, entries)
    topic.groups = groups.flatMap(([name, kind]) => {
      const some = reflections.filter((reflection) => reflection.kind === kind)
      return some.length === 0 ? [] : [groupOf(name, topic, some)]
    })
  }

  /** Describes the specifiers that programs import a topic's exports from. */
  function importsOf(ones) {
    const all = [...new Set(ones.map(({ entries }) => entries[0]))]
    if (all.length === 1) return `Imported from \`${all[0]}\`.`
    const names = (entry) => ones.filter(({ entries }) => entries[0] === entry).map(({ name }) => `\`${name}\``)
    return all.map((entry) => `- from \`${entry}\`: ${[...new Set(names(entry))].join(', ')}`).join('\n')
  }

  function factsOf(reflection, home) {
    const [source] = reflection.sources ?? reflection.signatures?.[0]?.sources ?? []
    const parts = [reflection, ...(reflection.signatures ?? [])]
    const see = parts.flatMap(({ comment }) => comment?.getTags('@see') ?? [])
    return {
      reflection,
      name: reflection.name,
      home,
      entries: specifiers.get(keyOf(project.getSymbolIdFromReflection(reflection))),
      isClass: reflection.kind === ReflectionKind.Class,
      file: fileOf(source.fileName.split('/dist/')[1], source.line, home),
      link: see.length === 0 ? undefined : textOf(see[0].content),
      text: allText(reflection),
    }
  }

  /**
   * Returns the source file of a declaration. A safe package has all declarations in one file, where a comment line
   * names the source of the next ones.
   */
  function fileOf(written, line, home) {
    if (written !== 'declarations.d.ts') return written.replace('.d.ts', '')
    const path = join(root, 'packages', home, 'dist', written)
    if (!sections.has(path)) sections.set(path, readFileSync(path, 'utf8').split('\n'))
    const before = sections.get(path).slice(0, line)
    return (before.findLast((each) => /^\/\/ /.test(each)) ?? '').slice(3).replace(/\.d\.ts$/, '')
  }
}

function groupOf(title, owner, children) {
  const group = new ReflectionGroup(title, owner)
  group.children = children
  return group
}

const textOf = (parts) => parts.map(({ text }) => text).join('')

function allText(reflection) {
  const parts = []
  const visit = (one) => {
    if (one.comment)
      parts.push(textOf(one.comment.summary), ...one.comment.blockTags.map(({ content }) => textOf(content)))
    if (one.type) parts.push(one.type.toString())
    one.traverse((child) => visit(child))
  }
  visit(reflection)
  return parts.join('\n')
}

class TopicRouter extends MemberRouter {
  getIdealBaseName(reflection) {
    if (reflection.parent?.isProject()) return `${folderOf(reflection)}/index`
    const module = reflection.kindOf(ReflectionKind.Module) ? reflection.parent : reflection.parent.parent
    const isTopic = reflection.kindOf(ReflectionKind.Module)
    return `${folderOf(module)}/${isTopic ? slug(reflection.name) : this.getReflectionAlias(reflection)}`
  }
}

class ShoalTheme extends MarkdownTheme {
  getRenderContext(page) {
    return new ShoalContext(this, page, this.application.options)
  }
}

class ShoalContext extends MarkdownThemeContext {
  constructor(...all) {
    super(...all)
    Object.assign(this.partials, {
      inheritance: () => '',
      sources: () => '',
      hierarchy: () => '',
      pageTitle: () => this.page.model.name,
      signature: (model, options) => this.#signature(model, options),
      accessor: (model) => this.#signature(model.getSignature ?? model.setSignature, {}),
    })
  }

  /** Renders a signature with its types, its description, and lists of parameters, results and errors. */
  #signature(model, { hideTitle, accessor, multipleSignatures }) {
    const comment = multipleSignatures ? model.comment : (model.comment ?? model.parent?.comment)
    const inline = (parts) => this.helpers.getCommentParts(parts).trim().replaceAll('\n', '\n  ')
    const described = (model.parameters ?? []).filter((each) => each.comment?.hasVisibleComponent())
    const rows = described.map(({ name, comment }) => `- \`${name}\`: ${inline(comment.summary)}`)
    const left = isRaw(this.page.model.parent ?? this.page.model) ? ['@example', '@see'] : ['@example']
    const tags = (comment?.blockTags ?? []).filter(({ tag }) => !left.includes(tag))
    for (const { tag, content } of tags) rows.push(`- ${tag.slice(1)}: ${inline(content)}`)
    const examples = (comment?.getTags('@example') ?? []).map(({ content }) => this.helpers.getCommentParts(content))
    return [
      hideTitle ? '' : this.partials.signatureTitle(model, { accessor }),
      comment === undefined ? '' : this.partials.comment(comment, { showTags: false, showSummary: true }),
      rows.join('\n'),
      ...examples,
    ].join('\n\n')
  }
}
