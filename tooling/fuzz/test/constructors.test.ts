import { expect, test } from 'vitest'

process.env['SHOAL_DEVICE'] = 'sim'
const entries = ['context', 'diagnostics', 'dlpack', 'external', 'graph', 'library', 'memory', 'sharing', 'texture']
const modules = [
  ...['types', 'ffi', 'nccl', 'nvshmem', 'nvrtc', 'nvjitlink', 'launch', 'driver', 'runtime'],
  ...['driver', 'runtime'].flatMap((name) => entries.map((entry) => `${name}/${entry}`)),
]

type Class = new (...args: unknown[]) => object

/** Classes that a program creates with `new`, and abstract classes. */
const madeByPrograms =
  /^(?:\w+Handle|Program|ProcessCheckpoint|PublicObject|LibraryVersion|\w+Version|CommunicatorOperations)$|^nvjitlink Linker$/

const classes = new Map<Class, string>()
for (const name of modules) {
  for (const [key, exported] of Object.entries((await import(`@shoal/${name}`)) as object)) {
    if (typeof exported !== 'function' || !/^class\b/.test(Function.prototype.toString.call(exported))) continue
    if (exported.prototype instanceof Error || [key, `${name} ${key}`].some((one) => madeByPrograms.test(one))) continue
    classes.set(exported as Class, `${name} ${key}`)
  }
}
const { Device } = await import('@shoal/driver')
const device = Device.get(0)
const arguments_ = [[], [device], [0], [{}], ['name'], [undefined, undefined]]

test.each([...classes].map(([one, name]) => [name, one] as const))(
  'new %s throws an error that names the factory',
  (name, one) => {
    for (const args of arguments_) {
      let error: unknown
      try {
        new one(...args)
      } catch (thrown) {
        error = thrown
      }
      expect(error, `${name}(${String(args)})`).toBeInstanceOf(TypeError)
      expect((error as Error).message).toMatch(/^new \w+: make it with \w/)
    }
  },
)
