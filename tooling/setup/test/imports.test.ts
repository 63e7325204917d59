import { describe, expect, test } from 'vitest'
import { importProblems, slotProblems } from '../imports.mjs'

const problems = (name: string, sources: Readonly<Record<string, string>>): string[] =>
  importProblems(name, new Map(Object.entries(sources)))

describe('the imports of a package', () => {
  test('of driver point inward', () => {
    const inward = "import { core } from '../core/core.js'\n"
    expect(problems('driver', { 'core/core.ts': '', 'memory/memory.ts': inward })).toEqual([])
    const outward = "import type { Memory } from '../memory/memory.js'\n"
    expect(problems('driver', { 'core/core.ts': outward, 'memory/memory.ts': '' })).toEqual([
      'packages/driver/src/core/core.ts imports memory/memory.ts, which is further out: move one of them, or what they share inward',
    ])
    expect(problems('driver', { 'index.ts': '', 'work/work.ts': "export * from '../index.js'\n" })).toHaveLength(1)
  })

  test('form no value cycle between folders', () => {
    const values = {
      'one/a.ts': "import {\n  type B,\n  b,\n} from '../two/b.js'\n",
      'two/b.ts': "export { a } from '../one/a.js'\n",
    }
    expect(problems('nccl', values)).toEqual([
      'packages/nccl/src: one, two import values from each other: move what they share to one of them',
    ])
    expect(problems('nccl', { ...values, 'two/b.ts': "import { type A } from '../one/a.js'\n" })).toEqual([])
  })

  test('form no large cycle of files, including type imports', () => {
    const circle = (length: number) =>
      Object.fromEntries(
        Array.from({ length }, (_, i) => [`folder/${i}.ts`, `import type { T } from './${(i + 1) % length}.js'\n`]),
      )
    expect(problems('nccl', circle(10))).toEqual([])
    expect(problems('nccl', circle(11))).toHaveLength(1)
  })
})

describe('the argument block', () => {
  test.each([
    'slots64[5] = handle',
    "import { slots32 } from '@shoal/ffi/calls'",
    'const words = signedSlots32',
    "const call = driver.bind('cuLaunchKernel', 4000, 11)",
    "nvshmem.bindBig('getenv', 0, 1, 'pointer')",
  ])('is not written by hand in %s', (text) => {
    const [problem] = slotProblems('driver', new Map([['work/launch.ts', text]]))
    expect(problem).toMatch(/^packages\/driver\/src\/work\/launch.ts has `.*uncheckedCalls\.ts and run `pnpm bindgen/)
    expect(slotProblems('driver', new Map([['work/launch.gen.ts', text]]))).toEqual([])
    expect(slotProblems('ffi', new Map([['calls/bind.ts', text]]))).toEqual([])
  })

  test('may be written through a bound signature', () => {
    const text = "library.function('fill', { parameters: ['target: ptr'], result: 'i32' }); fn.bind(object, 1, 2)"
    expect(slotProblems('driver', new Map([['work/fill.ts', text]]))).toEqual([])
  })
})
