import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { compiledOnce, stateOf } from '../src/proof/compiled.js'

const folder = scratchFolder()
const file = join(folder, 'out')

/** The content of the file after the call. */
async function ask(ingredients: string[], made: string): Promise<string> {
  await compiledOnce(ingredients, file, async () => writeFileSync(file, made))
  return readFileSync(file, 'utf8')
}

test('equal inputs are compiled once, and other inputs separately', async () => {
  expect(await ask([folder, 'text'], 'first')).toBe('first')
  expect(await ask([folder, 'text'], 'second')).toBe('first')
  expect(await ask([folder, 'other text'], 'third')).toBe('third')
})

test('a failed compilation is not cached', async () => {
  const failing = compiledOnce([folder, 'wrong'], file, () => Promise.reject(new Error('no such thing')))
  await expect(failing).rejects.toThrow('no such thing')
  expect(await ask([folder, 'wrong'], 'right')).toBe('right')
})

test('a changed header changes the state of its folder', () => {
  const headers = scratchFolder()
  writeFileSync(join(headers, 'a.h'), 'int a;')
  const before = stateOf(headers)
  expect(stateOf(headers)).toBe(before)
  writeFileSync(join(headers, 'a.h'), 'long a;')
  expect(stateOf(headers)).not.toBe(before)
})
