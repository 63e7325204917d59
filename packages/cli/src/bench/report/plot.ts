import { ShoalError } from '@shoal/types'
import type { BarSeriesOption, LineSeriesOption } from 'echarts/charts'

/** A line of a plot. */
export interface Line {
  readonly name: string
  /** Bytes, and the value there. */
  readonly points: readonly (readonly [number, number])[]
}

/** Bars of one colour: a value for each name, null where there is none. */
export interface Bars {
  readonly name: string
  readonly values: readonly (number | null)[]
}

interface AnyDiagram {
  readonly title: string
  readonly unit: string
  /** Of the axis of the values; that of bytes always is. */
  readonly logarithmic: boolean
}

/** Values over the message size. */
export interface LineDiagram extends AnyDiagram {
  readonly lines: readonly Line[]
}

/** Values of what has no size. */
export interface BarDiagram extends AnyDiagram {
  readonly names: readonly string[]
  readonly bars: readonly Bars[]
}

/** One diagram of a plot. */
export type Diagram = LineDiagram | BarDiagram

const width = 1000
const height = 340
/** Above the diagrams: the titles of the whole. */
const top = 60
/** Room around a diagram for its title, its labels and the legend. */
const margin = { top: 40, bottom: 60, left: 70, right: 230 }

/** Diagrams, one below the other, as an SVG. @throws PlottingLibraryError */
export async function plot(title: string, subtitle: string, diagrams: readonly Diagram[]): Promise<string> {
  const library = await loadLibrary()
  const { use, init, BarChart, LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer } = library
  use([BarChart, LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height: top + height * diagrams.length })
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
          top: top + height * index,
          textStyle: { fontSize: 13 },
        })),
      ],
      // The same line has the same name, and so the same colour, in all diagrams.
      legend: {
        orient: 'vertical',
        left: width - margin.right + 20,
        top: top + margin.top,
        itemGap: 8,
        textStyle: { fontSize: 11 },
      },
      grid: diagrams.map((_, index) => ({
        left: margin.left,
        right: margin.right,
        top: top + height * index + margin.top,
        height: height - margin.top - margin.bottom,
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
              axisLabel: { formatter: (value: number) => bytesInWords(value) },
            }
          : {
              gridIndex: index,
              type: 'category' as const,
              data: [...diagram.names],
              axisLabel: { interval: 0, fontSize: 10, width: labelWidth(diagram), overflow: 'break' as const },
            },
      ),
      yAxis: diagrams.map(({ logarithmic }, index) => ({
        gridIndex: index,
        type: logarithmic ? ('log' as const) : ('value' as const),
        axisLabel: { formatter: (value: number) => String(value) },
      })),
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
    return diagram.bars.map(({ name, values }) => ({ type: 'bar', name, ...place, data: [...values] }))
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

/** Of the name below a bar, so that it is broken before it runs into the next. */
function labelWidth({ names }: BarDiagram): number {
  return (width - margin.left - margin.right) / Math.max(names.length, 1) - 6
}

/** `--svg` was asked for, and the package that draws is not there. */
export class PlottingLibraryError extends ShoalError {
  override readonly name: string = 'PlottingLibraryError'
  readonly code = 'SHOAL_PLOTTING_LIBRARY_NOT_FOUND'
}

/** Whether there will be a plot. @throws PlottingLibraryError */
export async function requirePlottingLibrary(): Promise<void> {
  await loadLibrary()
}

/** Loaded only with `--svg`: it is large. */
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
