import { ShoalError } from '@shoal/types'
import type { BarSeriesOption, LineSeriesOption } from 'echarts/charts'

/** A line of a plot. */
export interface Line {
  readonly name: string
  /** Pairs of bytes and value. */
  readonly points: readonly (readonly [number, number])[]
}

/** Bars of one colour: one value per name, null for no bar. */
export interface Bars {
  readonly name: string
  readonly values: readonly (number | null)[]
}

interface AnyDiagram {
  readonly title: string
  readonly unit: string
}

/** Values by message size. */
export interface LineDiagram extends AnyDiagram {
  /** Whether the value axis is logarithmic; the axis of bytes always is. */
  readonly logarithmic: boolean
  readonly lines: readonly Line[]
}

/** Values without a message size, side by side. */
export interface BarDiagram extends AnyDiagram {
  readonly names: readonly string[]
  readonly bars: readonly Bars[]
}

/** One diagram of a plot. */
export type Diagram = LineDiagram | BarDiagram

const width = 1000
/** Height of the title above the diagrams. */
const top = 60
/** Margin of a diagram for its title, labels and legend. */
const margin = { top: 40, bottom: 60, left: 70, right: 230 }
/** Space for the names to the left of bars. */
const nameWidth = 300

/** Draws diagrams below each other as an SVG. @throws PlottingLibraryError */
export async function plot(title: string, subtitle: string, diagrams: readonly Diagram[]): Promise<string> {
  const library = await loadLibrary()
  const { use, init, BarChart, LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer } = library
  use([BarChart, LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])
  const heights = diagrams.map(heightOf)
  const tops = heights.map((_, index) => heights.slice(0, index).reduce((sum, height) => sum + height, top))
  const chart = init(null, null, {
    renderer: 'svg',
    ssr: true,
    width,
    height: heights.reduce((sum, one) => sum + one, top),
  })
  const lines = diagrams.flatMap((diagram) => ('lines' in diagram ? diagram.lines : []))
  const everywhere = lines.flatMap(({ points }) => points.map(([bytes]) => bytes))
  const [least, most] = [Math.min(...everywhere), Math.max(...everywhere)]
  try {
    chart.setOption({
      animation: false,
      backgroundColor: '#ffffff',
      textStyle: { fontFamily: 'sans-serif' },
      title: [
        { text: title, subtext: subtitle, left: 'center', top: 5 },
        ...diagrams.map((diagram, index) => ({
          text: `${diagram.title} (${diagram.unit})`,
          left: margin.left - 30,
          top: tops[index]!,
          textStyle: { fontSize: 13 },
        })),
      ],
      // A line with the same name has the same colour in all diagrams.
      legend: {
        orient: 'vertical',
        left: width - margin.right + 20,
        top: top + margin.top,
        itemGap: 8,
        textStyle: { fontSize: 11 },
      },
      grid: diagrams.map((diagram, index) => ({
        left: 'lines' in diagram ? margin.left : nameWidth + 20,
        right: margin.right,
        top: tops[index]! + margin.top,
        height: heights[index]! - margin.top - margin.bottom,
      })),
      xAxis: diagrams.map((diagram, index) =>
        'lines' in diagram
          ? {
              gridIndex: index,
              type: 'log' as const,
              logBase: 2,
              min: least,
              max: most > least ? most : least * 2,
              name: 'bytes',
              nameLocation: 'middle' as const,
              nameGap: 28,
              axisLabel: { formatter: (value: number) => bytesInWords(value), hideOverlap: true },
            }
          : valueAxis(index, hasOutliers(diagram)),
      ),
      yAxis: diagrams.map((diagram, index) =>
        'lines' in diagram
          ? valueAxis(index, diagram.logarithmic)
          : {
              gridIndex: index,
              type: 'category' as const,
              inverse: true,
              data: [...diagram.names],
              axisLabel: { interval: 0, fontSize: 10, width: nameWidth, overflow: 'truncate' as const },
            },
      ),
      series: diagrams.flatMap((diagram, index) => seriesOf(diagram, index)),
    })
    return chart.renderToSVGString()
  } finally {
    chart.dispose()
  }
}

function seriesOf(diagram: Diagram, index: number): (LineSeriesOption | BarSeriesOption)[] {
  const place = { xAxisIndex: index, yAxisIndex: index }
  if ('bars' in diagram) {
    // 0 has no logarithm and no visible bar.
    return diagram.bars.map(({ name, values }) => ({
      type: 'bar',
      name,
      ...place,
      data: values.map((value) => value || null),
    }))
  }
  return diagram.lines.map(({ name, points }) => ({
    type: 'line',
    name,
    ...place,
    symbolSize: 5,
    // 0 has no logarithm.
    data: points.filter(([, value]) => !diagram.logarithmic || value > 0).map(([bytes, value]) => [bytes, value]),
  }))
}

function heightOf(diagram: Diagram): number {
  const inside = 'lines' in diagram ? 240 : diagram.names.length * (8 + 12 * diagram.bars.length)
  return margin.top + inside + margin.bottom
}

function valueAxis(gridIndex: number, isLogarithmic: boolean) {
  const axisLabel = { formatter: (value: number) => String(value), hideOverlap: true }
  return { gridIndex, type: isLogarithmic ? ('log' as const) : ('value' as const), axisLabel }
}

/** True if the longest bar would make most others too short to distinguish. */
function hasOutliers({ bars }: BarDiagram): boolean {
  const values = bars.flatMap((one) => one.values.filter((value) => value !== null && value > 0) as number[])
  const sorted = values.sort((one, other) => one - other)
  return (sorted.at(-1) ?? 0) > 20 * (sorted[sorted.length >> 1] ?? 0)
}

/** `--svg` was given, but the plotting package is missing. */
export class PlottingLibraryError extends ShoalError {
  override readonly name: string = 'PlottingLibraryError'
  readonly code = 'SHOAL_PLOTTING_LIBRARY_NOT_FOUND'
}

/** Requires the plotting package. @throws PlottingLibraryError */
export async function requirePlottingLibrary(): Promise<void> {
  await loadLibrary()
}

/** Loaded only with `--svg`, because it is large. */
async function loadLibrary() {
  try {
    const [core, charts, components, renderers] = await Promise.all([
      import('echarts/core'),
      import('echarts/charts'),
      import('echarts/components'),
      import('echarts/renderers'),
    ])
    return { ...core, ...charts, ...components, ...renderers }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const why = code === 'ERR_MODULE_NOT_FOUND' ? 'is not installed' : `does not load (${message})`
    throw new PlottingLibraryError(`--svg needs the package echarts, which ${why}: npm install echarts`, { cause })
  }
}

function bytesInWords(bytes: number): string {
  const [unit, size] = (
    [
      ['G', 2 ** 30],
      ['M', 2 ** 20],
      ['K', 2 ** 10],
    ] as const
  ).find(([, one]) => bytes >= one) ?? ['', 1]
  return `${Number((bytes / size).toFixed(1))}${unit}`
}
