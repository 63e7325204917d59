/** Terminal colour codes: neighbouring ranks differ. */
const colours = [36, 33, 32, 35, 34, 31]

/** Returns the prefix of a rank's lines; in colour on a terminal. */
export function prefixOf(rank: number, ranks: number, stream: Pick<NodeJS.WriteStream, 'isTTY'>): string {
  const prefix = `[${String(rank).padStart(String(ranks - 1).length)}]`
  const isColoured = stream.isTTY && !process.env['NO_COLOR']
  return isColoured ? `\u001b[${colours[rank % colours.length]}m${prefix}\u001b[0m ` : `${prefix} `
}
