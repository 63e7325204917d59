import { expect, test } from 'vitest'
import { chosenTests, fitting } from '../quick.mjs'

const all = [
  'packages/ffi/test/calls.test.ts',
  'packages/ffi/test/lane.test.ts',
  'packages/ffi/test/structs.test.ts',
  'packages/types/test/structs.test.ts',
  'docs/examples/gpt/test/gpt.test.ts',
]

test('test:quick runs changed tests first, then tests named like a changed source, then the shortest', () => {
  const changed = ['packages/ffi/src/structs.ts', 'packages/ffi/test/lane.test.ts', 'README.md']
  const seconds = { 'packages/ffi/test/lane.test.ts': 50, 'packages/ffi/test/structs.test.ts': 20 }
  expect(chosenTests(changed, all, seconds)).toEqual([all[1], all[2], all[0]])
  expect(chosenTests(['docs/examples/gpt/src/main.ts'], all, {})).toEqual([all[4]])
  expect(chosenTests(['README.md', 'tooling/config/build.ts'], all, {})).toEqual([])
})

test('test:quick skips files that exceed the time, and continues with shorter files', () => {
  const seconds = { a: 70, b: 5, c: 30, d: 20, e: 1 }
  expect(fitting(['a', 'b', 'c', 'd', 'e'], 20, seconds)).toEqual(['b', 'd', 'e'])
  expect(fitting(['a', 'c', 'd', 'e'], 30, { ...seconds, a: 30 })).toEqual(['a', 'c', 'd', 'e'])
  expect(fitting(['b'], 0, seconds)).toEqual([])
})
