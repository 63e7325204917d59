import { isInstance, isProxy } from '../anyValue.js'
import { wrongType } from './scalars.js'

/**
 * Key of a static property of every public class: the `import.meta.url` of its file.
 *
 * When two copies of a package are loaded, each copy rejects the objects of the other. This property distinguishes the
 * copies in error messages.
 */
export const loadedFrom: unique symbol = Symbol.for('shoal.loadedFrom')

interface PublicClass<T> {
  readonly name: string
  readonly [loadedFrom]?: string
  readonly [Symbol.hasInstance]: (value: unknown) => boolean
  readonly prototype?: T
}

/** Returns an instance of a public class. @throws TypeError, also for an object of another copy of the package */
export function requireInstance<T>(
  value: unknown,
  api: string,
  name: string,
  publicClass: PublicClass<T>,
  expected?: string,
): T {
  if (isInstance(value, publicClass as never) && !isProxy(value)) return value as T
  const wanted = expected ?? `${article(publicClass.name)} ${publicClass.name}`
  throw otherCopy(value, api, name, publicClass) ?? wrongType(api, name, wanted, value)
}

/** Returns an error if another copy of the package made the object, else undefined. */
export function otherCopy(
  value: unknown,
  api: string,
  name: string,
  publicClass: { readonly name: string; readonly [loadedFrom]?: string },
): TypeError | undefined {
  const ours = publicClass[loadedFrom]
  const theirs = copyOf(value, publicClass.name)
  if (theirs === undefined || ours === undefined || theirs === ours) return undefined
  return new TypeError(
    `${api}: ${name} must be ${article(publicClass.name)} ${publicClass.name} of the copy of the package at ${ours}, not of the ` +
      `copy at ${theirs}. Two copies of the package are loaded; install one version of it, once`,
  )
}

function copyOf(value: unknown, className: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  try {
    for (let at: object | null = Object.getPrototypeOf(value); at !== null; at = Object.getPrototypeOf(at)) {
      const madeBy = (at as { constructor?: { name?: unknown; [loadedFrom]?: unknown } }).constructor
      const from = madeBy?.[loadedFrom]
      if (madeBy?.name === className && typeof from === 'string') return from
    }
  } catch {
    // A proxy or a getter of the program threw, so the object's origin is unknown.
  }
  return undefined
}

function article(name: string): string {
  // By pronunciation: "a UniqueId".
  return /^(?:[AEIO]|U(?!ni))/.test(name) ? 'an' : 'a'
}
