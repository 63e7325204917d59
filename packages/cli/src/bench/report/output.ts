import { closeSync, openSync, writeFileSync } from 'node:fs'
import { UsageError } from '../../command.js'
import type { BenchOptions } from '../options.js'
import type { RankGroup } from '../rankGroup.js'
import { type Diagram, plot, requirePlottingLibrary } from './plot.js'
import { introduction, type Report, reportOf } from './report.js'

/** File name that means standard output. */
const standardOutput = '-'

function save(file: string, text: string): void {
  if (file === standardOutput) process.stdout.write(text)
  else writeFileSync(file, text)
}

/** Prints a benchmark's rows and writes its files, on the first rank only. */
export class Output {
  readonly #rankGroup: Pick<RankGroup, 'worldSize' | 'processes' | 'isFirst'>
  readonly #library: Report<unknown>['library']
  readonly #options: BenchOptions

  private constructor(
    rankGroup: Pick<RankGroup, 'worldSize' | 'processes' | 'isFirst'>,
    library: Report<unknown>['library'],
    options: BenchOptions,
  ) {
    this.#rankGroup = rankGroup
    this.#library = library
    this.#options = options
  }

  /**
   * Checks that all files can be written, then prints the setup and the lines of `head`.
   *
   * @throws UsageError for a file that cannot be written, PlottingLibraryError.
   */
  static async open(
    rankGroup: Pick<RankGroup, 'worldSize' | 'processes' | 'isFirst'>,
    library: Report<unknown>['library'],
    options: BenchOptions,
    head: readonly string[],
  ): Promise<Output> {
    const output = new Output(rankGroup, library, options)
    if (!rankGroup.isFirst) return output
    if (options.svg !== undefined) await requirePlottingLibrary()
    for (const file of [options.json, options.svg]) {
      if (file === undefined || file === standardOutput) continue
      try {
        closeSync(openSync(file, 'a'))
      } catch (error) {
        throw new UsageError(`${file} cannot be written: ${(error as Error).message}`)
      }
    }
    output.print(...introduction(reportOf(rankGroup, library, [], options)), ...head)
    return output
  }

  print(...lines: readonly string[]): void {
    if (!this.#rankGroup.isFirst) return
    const { json, svg } = this.#options
    // A file written to standard output must not be mixed with the table.
    const stream = [json, svg].includes(standardOutput) ? process.stderr : process.stdout
    stream.write(`${lines.join('\n')}\n`)
  }

  /** Writes the requested files: `rows` and `summary` as JSON, `diagrams` as a plot. */
  async write(
    rows: readonly unknown[],
    plotted: { readonly title: string; readonly diagrams: readonly Diagram[] },
    summary?: object,
  ): Promise<void> {
    const { json, svg, software } = this.#options
    if (!this.#rankGroup.isFirst) return
    const report = { ...reportOf(this.#rankGroup, this.#library, rows, this.#options), ...(summary && { summary }) }
    if (json !== undefined) save(json, `${JSON.stringify(report, undefined, 2)}\n`)
    if (svg === undefined) return
    const devices = software ? 'SOFTWARE DEVICE: the figures mean nothing' : [...new Set(report.devices)].join(', ')
    const subtitle = `${this.#library.name} ${this.#library.version}, ${devices}`
    save(svg, await plot(plotted.title, subtitle, plotted.diagrams))
  }
}
