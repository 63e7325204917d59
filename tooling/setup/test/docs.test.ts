import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript-api'
import { beforeAll, describe, expect, it } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { tellValues, wrongComments } from './told.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const vitest = join(root, 'node_modules/vitest/vitest.mjs')

interface Program {
  readonly name: string
  readonly source: string
}

const packagePages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`)
const guides = readdirSync(join(root, 'docs/guides')).map((page) => `docs/guides/${page}`)
const pages = ['README.md', ...guides, ...packagePages]
const programs = pages.flatMap(programsOf)

/** Returns the whole programs of a page: the blocks that start with imports. Other blocks are fragments. */
function programsOf(page: string): Program[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```ts\n(import [\s\S]*?)^```/gm)].map((match, index) => ({
    name: `${page}, program ${index + 1}`,
    source: match[1]!,
  }))
}

// These programs are meant for the software device, which has neither compilers nor cuBLAS. A library that the
// environment names would be loaded instead.
const withoutLibraries = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^SHOAL_(CUDA|CUDART|NCCL|NVSHMEM)_LIBRARY$/.test(name)),
)

/** Returns why a program cannot run here that uses a library without a counterpart in the software device. */
function missingLibrary(source: string): string | undefined {
  const wanted = { nvrtc: /@shoal\/(nvrtc|driver\/compile)/, nvjitlink: /@shoal\/nvjitlink/, cublas: /@shoal\/cublas/ }
  for (const [name, pattern] of Object.entries(wanted)) {
    if (!pattern.test(source)) continue
    const file = join(root, `packages/${name}-sys/dist/index.js`)
    const look = `const { ${name} } = await import(${JSON.stringify(file)}); ${name}.load()`
    const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', look], {
      env: { ...withoutLibraries, SHOAL_DEVICE: 'sim' },
    })
    if (status !== 0) return `no ${name} on this machine: set SHOAL_${name.toUpperCase()}_LIBRARY`
  }
  return undefined
}

describe('programs in the documentation', () => {
  const folder = scratchFolder()

  beforeAll(() => {
    // The packages resolve by name, as in a user's project.
    mkdirSync(join(folder, 'node_modules/@shoal'), { recursive: true })
    for (const name of readdirSync(join(root, 'packages'))) {
      symlinkSync(join(root, 'packages', name), join(folder, 'node_modules/@shoal', name), 'dir')
    }
    symlinkSync(join(root, 'node_modules/vitest'), join(folder, 'node_modules/vitest'), 'dir')
    writeFileSync(join(folder, 'vitest.config.mjs'), "export default { test: { include: ['program*.mjs'] } }")
    const compilerOptions = { noEmit: true, types: ['node'], typeRoots: [join(root, 'node_modules/@types')] }
    const config = { extends: join(root, 'tooling/config/tsconfig.package.json'), compilerOptions, include: ['*.mts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    for (const [index, { source }] of programs.entries()) {
      writeFileSync(join(folder, `program${index}.mts`), source)
      const { outputText } = ts.transpileModule(tellValues(source).text, {
        compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
      })
      writeFileSync(join(folder, `program${index}.mjs`), outputText)
    }
  })

  it('exist', () => {
    expect(programs.length).toBeGreaterThan(15)
  })

  it('compile under strict settings', () => {
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const { stdout, status } = spawnSync(process.execPath, [compiler, '-p', folder], { encoding: 'utf8' })
    expect(stdout).toBe('')
    expect(status).toBe(0)
  })

  // A program that declares an input of the reader's with `declare` is only compiled.
  const runnable = programs
    .map((program, index) => ({ ...program, index }))
    .filter(({ source }) => !/^declare /m.test(source))

  it.for(runnable)(
    'run $name on the software device, and print the values in their comments',
    ({ index, source }, { skip }) => {
      const missing = missingLibrary(source)
      if (missing !== undefined) return skip(missing)
      const program = join(folder, `program${index}.mjs`)
      const runner = /from 'vitest'/.test(source) ? [vitest, 'run', '--root', folder] : []
      const { status, stdout, stderr } = spawnSync(process.execPath, [...runner, program], {
        env: { ...withoutLibraries, SHOAL_DEVICE: 'sim' },
        encoding: 'utf8',
        timeout: 300_000,
      })
      expect(stderr.replaceAll(/^shoal: software device in use.*\n/gm, '')).toBe('') // each process prints one line
      expect(status).toBe(0)
      expect(wrongComments(tellValues(source).told, stdout)).toEqual([])
    },
  )

  it('are compared with their output', () => {
    const source =
      "import 'node:util'\nconsole.log([1, 2]) // [ 1, 3 ]\n1 + 1 // 3\nconsole.log('yes') // yes: for now\n"
    const { text, told } = tellValues(source)
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', text], { encoding: 'utf8' })
    expect(wrongComments(told, stdout)).toEqual([
      'line 2 says "[ 1, 3 ]" and prints "[ 1, 2 ]"',
      'line 3 says "3" and prints "2"',
    ])
  })
})

describe('links in the documentation', () => {
  const withoutPrograms = (page: string) => readFileSync(join(root, page), 'utf8').replace(/```[\s\S]*?```/g, '')
  const isPage = (path: string) => path.endsWith('.md') && !/(^|\/)(node_modules|dist|site)\//.test(path)
  // Links between workspace packages form circles.
  const below = (folder: string): string[] =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name)
      if (!entry.isDirectory()) return [path]
      return entry.name === 'node_modules' ? [] : below(path)
    })
  const all = ['README.md', 'CONTRIBUTING.md', ...packagePages, ...below('docs'), 'tooling/bindgen/README.md']

  it.each(all.filter((path) => isPage(path) && existsSync(join(root, path))))('of %s have existing targets', (page) => {
    const text = withoutPrograms(page)
    const targets = [...text.matchAll(/\]\(([^)\s#]+)[^)]*\)/g)].map((match) => match[1]!)
    const local = targets.filter((target) => !/^[a-z]+:/.test(target))
    expect(local.filter((target) => !existsSync(join(root, dirname(page), target)))).toEqual([])
  })

  it('name existing headings', () => {
    const headings = (page: string) =>
      [...withoutPrograms(page).matchAll(/^#+ (.*)$/gm)].map((match) => {
        const words = match[1]!.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '')
        return words.replaceAll(' ', '-')
      })
    const broken = all
      .filter((page) => isPage(page) && existsSync(join(root, page)))
      .flatMap((page) =>
        [...withoutPrograms(page).matchAll(/\]\(([^)\s#]*)#([^)\s]+)\)/g)]
          .filter(([, target]) => !/^[a-z]+:/.test(target!))
          .filter(
            ([, target, heading]) => !headings(target === '' ? page : join(dirname(page), target!)).includes(heading!),
          )
          .map(([link]) => `${page}: ${link}`),
      )
    expect(broken).toEqual([])
  })
})
