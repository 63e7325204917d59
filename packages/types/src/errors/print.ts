/** The `util.inspect` that a custom inspection function receives. */
export type Inspect = (value: unknown, options?: object) => string

/** Most lines of a printed error, so that it fits on one screen. */
const mostLines = 15
const mostHeadLines = 11
const fewestFrames = 2
const mostDataLines = 2
const lineLength = 120
const mostTextLength = 80

/** Prints an error: message, frames from the public function on, data fields and cause. */
export function printError(error: Error, inspect: Inspect, options: object): string {
  const head = shorten(`${error.name}: ${error.message}`.split('\n'), mostHeadLines)
  const data = dataLines(error, inspect, options)
  let left = mostLines - head.length - data.length
  const frames = framesOf(error)
  const causeLines = error.cause === undefined ? [] : inspect(error.cause, options).split('\n')
  const cause = causeLines.slice(0, Math.max(1, left - Math.min(frames.length, fewestFrames + 2)))
  if (cause.length > 0) cause[0] = `  [cause]: ${cause[0]}`
  left -= cause.length
  return [...head, ...frames.slice(0, left), ...data, ...cause.map(cut)].join('\n')
}

/** Formats the data fields as `{ name: value, … }` on few lines. */
function dataLines(error: Error, inspect: Inspect, options: object): string[] {
  const limits = { ...options, depth: 1, compact: true, breakLength: Number.POSITIVE_INFINITY, maxArrayLength: 16 }
  const lines: string[] = []
  let line = '  {'
  const fields = Object.entries(error)
  for (const [index, [name, value]] of fields.entries()) {
    const text = cut(inspect(value, { ...limits, maxStringLength: mostTextLength }).replaceAll('\n', ' '))
    const part = ` ${name}: ${text}${index < fields.length - 1 ? ',' : ' }'}`
    if (line.length + part.length > lineLength && line !== '  {' && lines.length + 1 < mostDataLines) {
      lines.push(line)
      line = '   '
    }
    line += part
  }
  return fields.length === 0 ? [] : [...lines, line]
}

function framesOf({ stack, message }: Error): string[] {
  return typeof stack === 'string' ? stack.split('\n').slice(headLength(message)).filter(isFrame) : []
}

/** Counts the lines of a stack before its frames. */
function headLength(message: string): number {
  return message.split('\n').length
}

/**
 * Returns a stack that begins with the public function, of at most `most` frames.
 *
 * Frames of the packages and of Node.js would hide the caller.
 */
export function stackOfCaller(stack: string, message: string, most: number): string {
  const lines = stack.split('\n')
  const start = headLength(message)
  if (!lines.slice(start).every(isFrame)) return stack // the program formats stacks itself
  const frames = lines.slice(start).filter((line) => !line.includes('node:internal/'))
  const caller = frames.findIndex((line) => !isOwn(line))
  const shown = caller < 1 ? frames : frames.slice(caller - 1)
  return [...lines.slice(0, start), ...shown.slice(0, most)].join('\n')
}

const packages = /[\\/](?:@shoal|packages)[\\/]([a-z-]+)[\\/]dist[\\/]/

function isFrame(line: string): boolean {
  return line.startsWith('    at ')
}

/** True for a frame of the packages, or of an engine function that they called. */
function isOwn(frame: string): boolean {
  const name = packages.exec(frame)?.[1]
  return (name !== undefined && name !== 'cli') || frame.endsWith('(<anonymous>)') || frame.endsWith('(native)')
}

/** Keeps at most `most` lines; the last one says how many are missing. */
function shorten(lines: readonly string[], most: number): string[] {
  if (lines.length <= most) return lines.map(cut)
  const shown = lines.slice(0, most - 1).map(cut)
  return [...shown, `… and ${lines.length - shown.length} more lines in error.message`]
}

/** Shortens a line that is too long to print. */
function cut(line: string): string {
  const most = 4 * lineLength
  return line.length > most ? `${line.slice(0, most - 1)}…` : line
}

/** Defines error fields that printers omit, because the fields can be long. */
export function defineUnprinted(error: Error, fields: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(fields)) {
    Object.defineProperty(error, name, { value, writable: true, configurable: true, enumerable: false })
  }
}
