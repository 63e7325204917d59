/** Codes of a terminal: ranks that are next to each other differ. */
const colours = [36, 33, 32, 35, 34, 31]

/** What stands before the lines of a rank; in colour where a terminal shows them. */
export function prefixOf(rank: number, ranks: number, stream: Pick<NodeJS.WriteStream, 'isTTY'>): string {
  const prefix = `[${String(rank).padStart(String(ranks - 1).length)}]`
  const isColoured = stream.isTTY && !process.env['NO_COLOR']
  return isColoured ? `\u001b[${colours[rank % colours.length]}m${prefix}\u001b[0m ` : `${prefix} `
}
