/** One descriptor for all results. Not enumerable, so a result stays deeply equal to a literal and can be cloned. */
const toJson: PropertyDescriptor = {
  value(this: object): unknown {
    return fieldsOf(this)
  },
}

/**
 * Adds `toJSON` to a plain result with bigints, which `JSON.stringify` refuses.
 *
 * Addresses, handles and pointers become hexadecimal text, other bigints decimal text.
 */
export function withJson<T extends object>(result: T): T {
  return Object.defineProperty(result, 'toJSON', toJson)
}

const isHexadecimal = /(?:address|handles?|pointer|start)$/i

/** Converts a value to one that `JSON.stringify` accepts. Objects with a `toJSON` stay as they are. */
export function toPlainJson(value: unknown, name = ''): unknown {
  if (typeof value === 'bigint') return isHexadecimal.test(name) ? `0x${value.toString(16)}` : String(value)
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  if (Array.isArray(value)) return value.map((element) => toPlainJson(element, name))
  return 'toJSON' in value ? value : fieldsOf(value)
}

function fieldsOf(value: object): { readonly [field: string]: unknown } {
  return Object.fromEntries(Object.entries(value).map(([field, one]) => [field, toPlainJson(one, field)]))
}
