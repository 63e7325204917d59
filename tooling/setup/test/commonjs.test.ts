import { readFileSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { expect, test } from 'vitest'
import { publishablePackages } from '../publishable.mjs'

interface Entry {
  readonly require?: { readonly default: string }
  readonly default: string
}

const packages = [...publishablePackages().values()] as readonly {
  readonly name: string
  readonly path: string
  readonly manifest: { readonly exports: Record<string, string | Entry> }
}[]
const entries = packages.flatMap(({ name, path, manifest }) =>
  Object.entries(manifest.exports).flatMap(([key, target]) =>
    typeof target === 'string' || target.require === undefined
      ? []
      : [{ specifier: join(name, key), file: join(path, target.require.default), module: join(path, target.default) }],
  ),
)

/** Returns a `require` that loads no ES modules, in a separate realm, like Jest's. */
function requireWithoutModules(error: () => Error): (file: string) => Record<string, unknown> {
  const language = new Set(runInContext('Object.getOwnPropertyNames(globalThis)', createContext({})))
  const ofNode = Object.getOwnPropertyNames(globalThis).filter((name) => !language.has(name))
  const realm = createContext(Object.fromEntries(ofNode.map((name) => [name, Reflect.get(globalThis, name)])))
  const modules = new Map<string, { exports: Record<string, unknown> }>()
  const load = (file: string): Record<string, unknown> => {
    const known = modules.get(file)
    if (known !== undefined) return known.exports
    if (!file.endsWith('.cjs')) throw error()
    const own = createRequire(file)
    const require = (specifier: string): unknown =>
      isBuiltin(specifier) ? own(specifier) : load(own.resolve(specifier))
    const module = { exports: {}, filename: file, require }
    modules.set(file, module)
    const run = runInContext(`(function (module, require) {${readFileSync(file, 'utf8')}\n})`, realm, {
      filename: file,
    })
    try {
      run(module, require)
    } catch (failure) {
      modules.delete(file)
      throw failure
    }
    return module.exports
  }
  return load
}

const syntaxError = (): Error => new SyntaxError('Cannot use import statement outside a module')
const load = requireWithoutModules(syntaxError)

test('every entry of a package except the program has a CommonJS entry', () => {
  expect(entries.length).toBeGreaterThan(30)
})

test.each(entries)(
  'require and import of $specifier return the same module in Node.js',
  async ({ specifier, file }) => {
    const required = createRequire(file)(file)
    const imported = await import(file.replace(/\.cjs$/, '.js'))
    expect(specifier).toContain('@shoal/')
    for (const name of Object.keys(imported)) expect(required[name]).toBe(imported[name])
  },
)

test.each(entries)('$specifier has the same exports if require cannot load ES modules', async ({ file, module }) => {
  const given = load(file)
  expect(Object.keys(given).sort()).toEqual(Object.keys(await import(module)).sort())
  for (const name of Object.keys(given)) expect(given[name], name).toBeDefined()
})

test('packages loaded without ES modules share their state, and work', () => {
  const of = <T>(specifier: string): T =>
    load(entries.find((each) => each.specifier === specifier)?.file as string) as unknown as T
  const types = of<typeof import('../../../packages/types/dist/index.js')>('@shoal/types')
  const driver = of<typeof import('../../../packages/driver/dist/index.js')>('@shoal/driver')
  const ffi = of<typeof import('../../../packages/ffi/dist/index.js')>('@shoal/ffi')
  expect(driver.ShoalError).toBe(types.ShoalError)
  const memory = ffi.NativeMemory.allocate(8)
  expect(memory.bytes).toHaveLength(8)
  memory.dispose()
  expect(() => ffi.NativeMemory.allocate(-1)).toThrow(/must be/)
})

test('an error inside a module is not hidden, and Node.js never loads a second copy', () => {
  const [{ file } = { file: '' }] = entries
  const broken = requireWithoutModules(() => new TypeError('broken'))
  expect(() => broken(file)).toThrow('broken')
  const loader = createRequire(file)(join(dirname(file), 'commonjs.cjs'))
  const own = new (createRequire(import.meta.url)('node:module').Module)(file)
  expect(() => loader(own, `./${basename(file)}`, syntaxError())).toThrow('import statement')
})
