import { type ParseArgsConfig, parseArgs } from 'node:util'
import { UsageError } from '../command.js'

type Options = NonNullable<ParseArgsConfig['options']>
type Config<O extends Options> = { args: string[]; allowPositionals: true; tokens: true; options: O }
type Parsed<O extends Options> = ReturnType<typeof parseArgs<Config<O>>>

/** Calls Node's `parseArgs`. @throws UsageError */
export function parseCommandLine<O extends Options>(args: readonly string[], options: O): Parsed<O> {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, tokens: true, options })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** Parses an integer of at least `least`. @throws UsageError */
export function wholeNumber(text: string, option: string, least: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least)
    throw new UsageError(`${option} must be a whole number from ${least}, got ${text}`)
  return value
}

/** Returns `text` if it is one of `words`. @throws UsageError */
export function oneOf<T extends string>(text: string, option: string, words: readonly T[]): T {
  const word = words.find((one) => one === text)
  if (word === undefined) throw new UsageError(`${option} must be ${words.join(' or ')}, got ${text}`)
  return word
}
