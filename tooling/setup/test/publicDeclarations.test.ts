import { expect, it } from 'vitest'
import { internalProblems, withoutInternal } from '../publicDeclarations.mjs'

it('published declarations omit internal members, and keep constructors', () => {
  const text = [
    'export class One {',
    '  /** @internal */',
    '  protected constructor(value: number)',
    '  /** What it is. */',
    '  readonly value: number',
    '  /** @internal */',
    '  get _value(): number',
    '}',
    '/** @internal */',
    'export interface Two {',
    '  /** @internal With words. */ _kept(): void; shown: string }',
    'export type Three = {',
    '  /** @internal */',
    '  _hidden?: () => { deep: string }; shown: string }',
    '',
  ]
  expect(withoutInternal(text.join('\n')).replaceAll(/\s+/g, ' ')).toBe(
    'export class One { protected constructor(value: number) /** What it is. */ readonly value: number } ' +
      'export interface Two { shown: string } export type Three = { shown: string } ',
  )
})

it('every @internal of the built packages is at a member or an export', () => {
  expect(internalProblems()).toEqual([])
})
