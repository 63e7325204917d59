import {
  isPlainObject,
  outOfRange,
  requireBoolean,
  requireInteger,
  requireList,
  requireOneOf,
  requireText,
  wrongType,
} from '@shoal/types'

/**
 * How to write an option for a compiler: the flag and its value.
 *
 * `switch` is the flag alone, if the option is true. `boolean` appends `true` or `false`. `flags` has separate flags
 * for true and false. `texts` repeats the flag per text. `numbers` is one list. `defines` repeats the flag per macro.
 */
export type OptionRule =
  | readonly ['switch' | 'boolean' | 'text' | 'texts' | 'numbers' | 'defines', flag: string]
  | readonly ['flags', whenTrue: string, whenFalse: string]
  | readonly ['integer', flag: string, least: number, greatest: number]
  | readonly ['word', flag: string, ...words: string[]]

/** Rules for all options of a compiler. */
export type OptionRules<T> = { readonly [K in keyof Required<T>]: OptionRule }

/** Encodes options for a compiler, in the order of the rules. @throws TypeError, RangeError */
export function encodeOptions<T extends object>(options: T, rules: OptionRules<T>, api: string): string[] {
  const encoded: string[] = []
  for (const name of Object.keys(rules) as (keyof T & string)[]) {
    const value = options[name]
    if (value !== undefined) encodeOption(value, rules[name], api, name, encoded)
  }
  return encoded
}

function encodeOption(value: unknown, rule: OptionRule, api: string, name: string, encoded: string[]): void {
  switch (rule[0]) {
    case 'switch':
      if (requireBoolean(value, api, name)) encoded.push(rule[1])
      return
    case 'boolean':
      encoded.push(`${rule[1]}${requireBoolean(value, api, name)}`)
      return
    case 'flags':
      encoded.push(requireBoolean(value, api, name) ? rule[1] : rule[2])
      return
    case 'integer':
      encoded.push(`${rule[1]}${requireInteger(value, api, name, rule[2], rule[3])}`)
      return
    case 'word':
      encoded.push(`${rule[1]}${requireOneOf(value, api, name, rule.slice(2))}`)
      return
    case 'text':
      encoded.push(`${rule[1]}${requireText(value, api, name)}`)
      return
    case 'texts':
      for (const text of requireTexts(value, api, name)) encoded.push(`${rule[1]}${text}`)
      return
    case 'numbers': {
      const numbers = requireList(value as readonly unknown[], api, name, 'an array of numbers')
      if (numbers.length === 0) return
      encoded.push(
        `${rule[1]}${numbers.map((each, index) => requireInteger(each, api, `${name}[${index}]`, 1, 99_999)).join(',')}`,
      )
      return
    }
    case 'defines':
      encodeDefines(value, rule[1], api, name, encoded)
  }
}

/** Returns an array of strings that are not empty. @throws TypeError, RangeError */
export function requireTexts(value: unknown, api: string, name: string): string[] {
  const list = requireList(value as readonly unknown[], api, name, 'an array of strings')
  return list.map((text, index) => requireText(text, api, `${name}[${index}]`))
}

function encodeDefines(value: unknown, flag: string, api: string, name: string, encoded: string[]): void {
  if (!isPlainObject(value)) throw wrongType(api, name, 'a plain object such as { BLOCK: 256 }', value)
  for (const [macro, given] of Object.entries(value)) {
    if (!/^[A-Za-z_]\w*(\([\w, .]*\))?$/.test(macro)) throw outOfRange(api, name, 'macros by their names', macro)
    if (typeof given === 'number' || typeof given === 'bigint' || given === true) {
      encoded.push(given === true ? `${flag}${macro}` : `${flag}${macro}=${given}`)
    } else if (typeof given === 'string' && !given.includes('\0')) {
      encoded.push(`${flag}${macro}=${given}`)
    } else if (given !== undefined && given !== false) {
      throw wrongType(api, `${name}.${macro}`, 'a string without NUL characters, a number or a boolean', given)
    }
  }
}
