/** A value in a few words, for the message of an argument error. */
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value.length > 60 ? `'${value.slice(0, 57)}…'` : `'${value}'`
    case 'bigint':
      return `${value}n`
    case 'function':
      return value.name ? `function ${value.name}` : 'a function'
    case 'symbol':
      return value.toString()
    case 'object': {
      if (value === null) return 'null'
      const className = (Object.getPrototypeOf(value) as { constructor?: { name?: string } } | null)?.constructor?.name
      return className === undefined || className === 'Object' ? 'a plain object' : `an object of class ${className}`
    }
    default:
      return String(value)
  }
}
