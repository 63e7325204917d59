import type { Callable, Parameter } from '../contract.js'

type Maker = () => unknown
export type Makers = { readonly [name: string]: Maker }

/** A package under test, with the values that its functions take. */
export interface Subject {
  readonly module: { readonly [name: string]: unknown }
  /** Creates an object of an exported class, for a call of the named method. */
  readonly instances: { readonly [className: string]: (method: string) => unknown }
  /** Right values of parameters. The key is `FUNCTION#parameter`, `#parameter` or the type. */
  readonly values: Makers
  /** Objects that belong to another package, another copy of the package or another device. */
  readonly foreignObjects: Makers
  /** Called after the last question. */
  readonly end?: () => unknown
}

/**
 * Returns the right value of a parameter.
 * @throws Error if no rule knows the parameter
 */
export function rightValue(subject: Subject, api: string, parameter: Parameter): unknown {
  const { name, type, kinds } = parameter
  // This parameter is the name of the function that error messages start with.
  if (name === 'api') return api
  const maker = subject.values[`${api}#${name}`] ?? subject.values[`#${name}`] ?? subject.values[type]
  if (maker !== undefined) return maker()
  if (kinds.includes('undefined')) return undefined
  throw new Error(`no right value is known for ${api}#${name}: ${type}`)
}

/** Returns the name of a function as users write it. */
export function apiOf({ place, owner, name }: Callable): string {
  return place === 'export' ? name : place === 'new' ? `new ${owner}` : `${owner}.${name}`
}

/** Right values by parameter name, for every package. */
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
