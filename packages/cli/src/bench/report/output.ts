import { closeSync, openSync, writeFileSync } from 'node:fs'
import { UsageError } from '../../command.js'
import type { BenchOptions } from '../options.js'
import { type Diagram, plot, requirePlottingLibrary } from './plot.js'
import type { Report } from './report.js'

/** What a benchmark tells: rows while they come, files in the end. */
export class Output {
  readonly #options: BenchOptions

  private constructor(options: BenchOptions) {
    this.#options = options
  }

  /**
   * Looks now for what would otherwise be missing after the last size.
   * @throws UsageError when a file that was asked for cannot be written, PlottingLibraryError.
   */
  static async open(options: BenchOptions): Promise<Output> {
    if (options.svg !== undefined) await requirePlottingLibrary()
    for (const file of [options.json, options.svg]) {
      if (file === undefined) continue
      try {
        closeSync(openSync(file, 'a'))
      } catch (error) {
        throw new UsageError(`${file} cannot be written: ${(error as Error).message}`)
      }
    }
    return new Output(options)
  }

  print(...lines: readonly string[]): void {
    process.stdout.write(`${lines.join('\n')}\n`)
  }

  /** Writes the files that were asked for; `drawing` is what there is to draw. */
  async write(
    report: Report<unknown>,
    drawing: { readonly title: string; readonly diagrams: readonly Diagram[] },
  ): Promise<void> {
    const { json, svg } = this.#options
    if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, undefined, 2)}\n`)
    if (svg === undefined) return
    const subtitle = `${report.library.name} ${report.library.version}, ${
      report.software ? 'SOFTWARE DEVICE: the figures mean nothing' : [...new Set(report.devices)].join(', ')
    }`
    writeFileSync(svg, await plot(drawing.title, subtitle, drawing.diagrams))
  }
}
