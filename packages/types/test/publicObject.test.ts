import { isDeepStrictEqual } from 'node:util'
import { inspectKey, PublicObject } from '@shoal/types'
import { expect, test } from 'vitest'

class Box extends PublicObject {
  readonly #content: unknown

  constructor(content: unknown, identity?: unknown) {
    super(identity)
    this.#content = content
  }

  override [inspectKey](): string {
    return `Box { of: ${typeof this.#content} }`
  }
}

test('public objects are equal only if they share an identity', () => {
  expect(isDeepStrictEqual(new Box(1), new Box(1))).toBe(false)
  expect(new Box(1)).not.toEqual(new Box(1))
  expect(isDeepStrictEqual(new Box(1, 'one'), new Box(2, 'one'))).toBe(true)
})

test('JSON.stringify prints the same line as console.log for public objects', () => {
  expect(JSON.stringify([new Box(1n)])).toBe('["Box { of: bigint }"]')
})

test('structuredClone refuses a public object with a reason', () => {
  expect(() => structuredClone({ box: new Box(1) })).toThrow(
    /^Symbol\(an object of Shoal, which belongs to its thread: .*could not be cloned/,
  )
})
