/** Returns the first host of a Slurm list: gpu03 for `gpu[03-05,07],login1`. */
export function firstHostOf(list: string): string | undefined {
  // Take the text up to the first comma outside brackets, then the first number of each bracket.
  const [first = ''] = /^(?:[^,[]|\[[^\]]*\])*/.exec(list.trim()) ?? []
  const host = first.replaceAll(/\[([^[\]]*)\]/g, (_, numbers: string) => numbers.split(/[-,]/)[0] ?? '')
  return host === '' ? undefined : host
}

/** Returns a node's number of tasks from a Slurm list: `4(x2),3` means 4, 4 and 3. */
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
