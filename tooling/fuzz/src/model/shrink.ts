/** Removes parts of a failing sequence and returns the fewest steps found that still fail. */
export async function shrink(
  steps: readonly number[],
  fails: (steps: readonly number[]) => Promise<boolean>,
  mostRuns: number,
): Promise<readonly number[]> {
  let kept = steps
  let runs = 0
  for (let parts = 2; kept.length > 1 && runs < mostRuns; ) {
    const size = Math.ceil(kept.length / parts)
    let isSmaller = false
    for (let start = 0; start < kept.length && runs < mostRuns; start += size) {
      const rest = [...kept.slice(0, start), ...kept.slice(start + size)]
      runs += 1
      if (rest.length === 0 || !(await fails(rest))) continue
      kept = rest
      isSmaller = true
      break
    }
    if (isSmaller) parts = Math.max(2, parts - 1)
    else if (size === 1) break
    else parts = Math.min(kept.length, parts * 2)
  }
  return kept
}
