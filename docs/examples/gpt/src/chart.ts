const [width, height, left, bottom, gap] = [720, 360, 56, 40, 16]

/** The curve of a loss over its steps, as SVG: each step, and in front the mean of those around it. */
export function lossChart(losses: readonly number[]): string {
  const most = Math.max(...losses)
  const least = Math.min(...losses)
  const x = (step: number): number => left + ((width - left - gap) * (step - 1)) / Math.max(1, losses.length - 1)
  const y = (loss: number): number => gap + ((height - bottom - gap) * (most - loss)) / (most - least || 1)
  const line = (values: readonly number[], style: string): string => {
    const points = values.map((value, index) => `${x(index + 1).toFixed(1)},${y(value).toFixed(1)}`)
    return `<polyline points="${points.join(' ')}" fill="none" ${style}/>`
  }
  const reach = Math.ceil(losses.length / 50)
  const means = losses.map((_, index) => {
    const around = losses.slice(Math.max(0, index - reach), index + reach + 1)
    return around.reduce((sum, loss) => sum + loss, 0) / around.length
  })
  const ticks = [0, 1, 2, 3, 4].map((part) => most - ((most - least) * part) / 4)
  const steps = [...new Set([1, Math.ceil(losses.length / 2), losses.length])]
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    '<rect width="100%" height="100%" fill="white"/>',
    ...ticks.map(
      (loss) =>
        `<path d="M${left} ${y(loss).toFixed(1)}H${width - gap}" stroke="#ddd"/>` +
        `<text x="${left - 8}" y="${(y(loss) + 4).toFixed(1)}" text-anchor="end">${loss.toFixed(2)}</text>`,
    ),
    ...steps.map((step) => `<text x="${x(step).toFixed(1)}" y="${height - 20}" text-anchor="middle">${step}</text>`),
    `<text x="${(left + width) / 2}" y="${height - 4}" text-anchor="middle">steps</text>`,
    line(losses, 'stroke="#9dc3e6"'),
    line(means, 'stroke="#1f4e79" stroke-width="2"'),
    '</svg>\n',
  ].join('\n')
}

/** One line that says how far a training is. */
export function progressLine(done: number, all: number, loss: number, perSecond: number): string {
  const cells = 24
  const full = Math.round((cells * done) / all)
  const bar = '█'.repeat(full) + '░'.repeat(cells - full)
  const rate = perSecond >= 10 ? perSecond.toFixed(0) : perSecond.toFixed(2)
  return `${bar} ${String(done).padStart(String(all).length)}/${all}  loss ${loss.toFixed(4)}  ${rate} steps/s`
}
