/** The first host of a list as Slurm writes it: `gpu[03-05,07],login1` begins with gpu03. */
export function firstHostOf(list: string): string | undefined {
  // Up to the first comma that stands in no brackets; of each bracket the first number.
  const [first = ''] = /^(?:[^,[]|\[[^\]]*\])*/.exec(list.trim()) ?? []
  const host = first.replaceAll(/\[([^[\]]*)\]/g, (_, numbers: string) => numbers.split(/[-,]/)[0] ?? '')
  return host === '' ? undefined : host
}

/** How many tasks a node has, of a list as Slurm writes it: `4(x2),3` is 4, 4 and 3. */
export function tasksOfNode(list: string, node: number): number | undefined {
  let left = node
  for (const part of list.split(',')) {
    const match = /^(\d+)(?:\(x(\d+)\))?$/.exec(part.trim())
    if (match === null) return undefined
    const times = Number(match[2] ?? 1)
    if (left < times) return Number(match[1])
    left -= times
  }
  return undefined
}
