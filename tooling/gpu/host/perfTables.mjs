// Parses the output of other benchmarks into numbers, and compares them.

/** Returns the rows of nccl-tests: bytes, and microseconds out of place and in place. */
export function rowsOfNcclTests(text) {
  return text.split('\n').flatMap((line) => {
    // size count type redop root | time algbw busbw #wrong | time algbw busbw #wrong
    const words = line.trim().split(/\s+/)
    if (words.length < 12 || !/^\d+$/.test(words[0])) return []
    const [outOfPlace, wrong, inPlace, wrongInPlace] = [5, 8, 9, 12].map((index) => words[index])
    if ([wrong, wrongInPlace].some((count) => /^[1-9]/.test(count ?? '0'))) {
      throw new Error(`nccl-tests found wrong results: ${line.trim()}`)
    }
    return [{ bytes: Number(words[0]), outOfPlace: Number(outOfPlace), inPlace: Number(inPlace) }]
  })
}

/** Returns the rows of an NVSHMEM perftests table: bytes, and the first figure after them. */
export function rowsOfPerftest(text) {
  return text.split('\n').flatMap((line) => {
    const words = line.split(/[|\s]+/).filter((word) => word !== '')
    if (!/^\d+$/.test(words[0] ?? '')) return []
    const value = words.slice(1).find((word) => /^\d+(?:\.\d+)?$/.test(word))
    return value === undefined ? [] : [{ bytes: Number(words[0]), value: Number(value) }]
  })
}

/** Returns the median over rounds for each size. `pick` selects the value of a row. */
export function medians(rounds, pick) {
  return ofEachSize(rounds, pick, (values) => values[(values.length - 1) >> 1])
}

/** Returns the least value over rounds for each size. `pick` selects the value of a row. */
export function leasts(rounds, pick) {
  return ofEachSize(rounds, pick, (values) => values[0])
}

function ofEachSize(rounds, pick, choose) {
  const found = new Map()
  for (const rows of rounds) {
    for (const row of rows) found.set(row.bytes, [...(found.get(row.bytes) ?? []), pick(row)])
  }
  return new Map([...found].map(([bytes, values]) => [bytes, choose(values.sort((a, b) => a - b))]))
}

/**
 * Returns the greatest ratio of `ours` to `theirs` over the sizes that both have and that `wanted` accepts, or
 * undefined if there is no such size.
 */
export function greatestRatio(ours, theirs, wanted) {
  const ratios = [...ours].flatMap(([bytes, value]) =>
    theirs.has(bytes) && wanted(bytes) ? [value / theirs.get(bytes)] : [],
  )
  return ratios.length === 0 ? undefined : Math.max(...ratios)
}

/** Returns the limit of a ratio in a list, or an empty list if there is no ratio. */
export function atMost(what, value, limit) {
  return value === undefined ? [] : [{ what, value, limit, unit: '', side: 'at most', met: value <= limit }]
}
