import type { Callable, Parameter } from '../contract.js'

type Maker = () => unknown
export type Makers = { readonly [name: string]: Maker }

/** A package that is asked, and what it is asked with. */
export interface Subject {
  readonly module: { readonly [name: string]: unknown }
  /** Makes an object of an exported class, for one of its methods. */
  readonly instances: { readonly [className: string]: (method: string) => unknown }
  /** Right values of parameters: by `FUNCTION#parameter`, `#parameter`, or the type. */
  readonly values: Makers
  /** Objects that are right for another package, another copy or another device. */
  readonly foreignObjects: Makers
  /** Called when all was asked. */
  readonly end?: () => unknown
}

/** The right value of a parameter. @throws Error for one that no rule knows */
export function rightValue(subject: Subject, api: string, parameter: Parameter): unknown {
  const { name, type, kinds } = parameter
  // Errors name the function that was called.
  if (name === 'api') return api
  const maker = subject.values[`${api}#${name}`] ?? subject.values[`#${name}`] ?? subject.values[type]
  if (maker !== undefined) return maker()
  if (kinds.includes('undefined')) return undefined
  throw new Error(`no right value is known for ${api}#${name}: ${type}`)
}

/** As users write it. */
export function apiOf({ place, owner, name }: Callable): string {
  return place === 'export' ? name : place === 'new' ? `new ${owner}` : `${owner}.${name}`
}

/** What a parameter of this name takes in every package. */
export const general: Makers = {
  'defineArray#count': () => 2,
  'defineTuple#types': () => ['f32', 'u8'],
  '#fn': () => () => undefined,
  '#dtype': () => 'f32',
  '#length': () => 4,
  '#byteLength': () => 2 ** 21,
  '#maximumBytes': () => 2 ** 22,
  '#maximumLength': () => 1024,
  '#content': () => 'memory',
  '#grid': () => 1,
  '#block': () => 32,
  '#blockSize': () => 32,
  '#blockCount': () => 1,
  '#granularity': () => 'minimum',
  '#status': () => 1,
  '#limit': () => 'STACK_SIZE',
}
