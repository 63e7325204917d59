import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] ??= 'sim'
const { suites } = await import('@shoal/conformance')

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = readFileSync(`${root}docs/surface.md`, 'utf8')
const sections = new Map(
  page
    .split(/^## /m)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf('\n')), text] as const),
)

/** Returns the entries of a package. */
async function entriesOf(name: string): Promise<Record<string, unknown>[]> {
  const { exports } = JSON.parse(readFileSync(`${root}packages/${name}/package.json`, 'utf8')) as { exports: object }
  const entries = Object.keys(exports).filter((entry) => !entry.endsWith('.json'))
  return Promise.all(entries.map((entry) => import(`@shoal/${name}${entry.slice(1)}`)))
}

/**
 * Returns a function that checks if an entry of the package has a class with the member, or a value without members.
 */
async function exported(name: string): Promise<(path: string) => boolean> {
  const modules = await entriesOf(name)
  // Their packages create these objects, so only their types are exported.
  const declared = [name, 'driver']
    .flatMap((each) => {
      const folder = `${root}packages/${each}/dist/`
      const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      return files.filter((file) => file.endsWith('.d.ts')).map((file) => readFileSync(folder + file, 'utf8'))
    })
    .join('\n')
  return (path) => {
    const [owner = '', member] = path.split('.')
    const found = modules.map((one) => one[owner]).find((one) => one !== undefined)
    if (member === undefined) return found !== undefined
    const { prototype = {} } = (found ?? {}) as { prototype?: object }
    if (found !== undefined && (member in (found as object) || member in prototype)) return true
    // A prototype does not contain the fields of each object.
    const bodies = [...declared.matchAll(new RegExp(`class ${owner}\\b[^]*?\\n}`, 'g'))].map(([body]) => body)
    return bodies.some((body) => new RegExp(`\\b${member}[(<:?]`).test(body))
  }
}

const rows = (text: string): string[][] =>
  [...text.matchAll(/^\| ([^|].+) \|$/gm)].map((match) => (match[1] as string).split(' | '))
const names = (cell = ''): string[] => [...cell.matchAll(/`([A-Za-z][\w.]*)`/g)].map((match) => match[1] as string)
const suitesIn = (text: string): string[] =>
  [...text.matchAll(/(?<!\*)\*([^*\n]+)\*/g)].map((match) => match[1] as string).filter((each) => !/^not /i.test(each))

describe.each(['driver', 'runtime', 'nccl', 'nvshmem'])('the rows of %s in docs/surface.md', (name) => {
  test('name the exports of the package', async () => {
    const has = await exported(name)
    const all = rows(sections.get(name) as string).flatMap((cells) => names(cells[1]))
    expect(all.length).toBeGreaterThan(20)
    expect(all.filter((each) => !has(each))).toEqual([])
  })

  test('state the support of the software device and the runs on H200s', () => {
    for (const cells of rows(sections.get(name) as string)) expect(cells.length, cells[0]).toBe(4)
  })
})

/** The sources of all cases, and of the programs that run on a GPU host. */
const callers = ['tooling/conformance/src/suites', 'tooling/conformance/src/support', 'tooling/gpu/host']
  .flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(?:ts|mjs)$/.test(file))
      .map((file) => readFileSync(`${root}${folder}/${file}`, 'utf8')),
  )
  .join('\n')

test.each(['driver', 'runtime', 'nccl', 'nvshmem'])(
  'each name of %s in docs/surface.md is used by a case, or its row says that it is not',
  async (section) => {
    const modules = await entriesOf(section)
    // Many classes have a member such as `create`. A static one is called with the name of its class.
    const callOf = (name: string): string => {
      const [owner = '', member] = name.split('.')
      if (member === undefined) return owner
      const found = modules.map((one) => one[owner]).find((one) => one !== undefined)
      const isStatic = typeof found === 'function' && member !== 'name' && Object.hasOwn(found, member)
      return isStatic ? `${owner}\\.${member}` : member
    }
    const unused = rows(sections.get(section) as string).flatMap(([, cell, , hardware = '']) =>
      names(cell).filter((name) => {
        const isExcepted = hardware.includes(`\`${name}\``) || hardware.includes(`\`${name.split('.').at(-1)}\``)
        return !isExcepted && !new RegExp(`\\b${callOf(name)}\\b`).test(callers)
      }),
    )
    expect(unused).toEqual([])
  },
)

interface Results {
  readonly jobs: readonly {
    readonly name: string
    readonly cases?: { readonly passed?: Readonly<Record<string, readonly string[]>> }
  }[]
}

test('suites and cases named in docs/surface.md exist, and have run on H200s unless marked', () => {
  const folder = `${root}docs/hardware/results/`
  const ran = new Set<string>()
  for (const file of readdirSync(folder).filter((each) => each.includes('h200'))) {
    for (const { name, cases } of (JSON.parse(readFileSync(folder + file, 'utf8')) as Results).jobs) {
      if (!name.startsWith('conformance')) continue
      for (const [suite, passed] of Object.entries(cases?.passed ?? {})) {
        ran.add(suite)
        for (const one of passed) ran.add(`${suite}: ${one}`)
      }
    }
  }
  const known = new Set(suites.flatMap(({ name, cases }) => [name, ...cases.map((one) => `${name}: ${one.name}`)]))
  const notYet = page
    .split('\n')
    .filter((line) => /not run yet/i.test(line))
    .flatMap(suitesIn)
  const named = suitesIn(page.slice(page.indexOf('\n## ')))
  expect(named.length).toBeGreaterThan(50)
  for (const each of named) {
    expect(known, each).toContain(each)
    const isNotYet = notYet.some((suite) => each === suite || each.startsWith(`${suite}: `))
    if (!isNotYet) expect(ran, each).toContain(each)
  }
})

test('files linked from docs/surface.md exist', () => {
  for (const [, path] of page.matchAll(/\]\(([^)#]+)\)/g)) expect(existsSync(`${root}docs/${path}`), path).toBe(true)
})
