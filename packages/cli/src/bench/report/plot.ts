import { ShoalError } from '@shoal/types'

/** A line of a plot. */
export interface Line {
  readonly name: string
  /** Bytes, and the value there. */
  readonly points: readonly (readonly [number, number])[]
}

/** One diagram of a plot; both axes are logarithmic where `logarithmic` says so, that of the bytes always. */
export interface Diagram {
  readonly title: string
  readonly unit: string
  readonly logarithmic: boolean
  readonly lines: readonly Line[]
}

const width = 1000
const height = 340
/** Above the diagrams: the titles of the whole. */
const top = 60
/** Room around a diagram for its title, its labels and the legend. */
const margin = { top: 40, bottom: 60, left: 70, right: 230 }

/** Diagrams over the message size, one below the other, as an SVG. @throws PlottingLibraryError */
export async function plot(title: string, subtitle: string, diagrams: readonly Diagram[]): Promise<string> {
  const { use, init, LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer } = await loadLibrary()
  use([LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height: top + height * diagrams.length })
  const everywhere = diagrams.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([bytes]) => bytes)))
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
      xAxis: diagrams.map((_, index) => ({
        gridIndex: index,
        type: 'log' as const,
        logBase: 2,
        min: least,
        max: most > least ? most : least * 2,
        name: 'bytes',
        nameLocation: 'middle' as const,
        nameGap: 28,
        axisLabel: { formatter: (value: number) => bytesInWords(value) },
      })),
      yAxis: diagrams.map(({ logarithmic }, index) => ({
        gridIndex: index,
        type: logarithmic ? ('log' as const) : ('value' as const),
        axisLabel: { formatter: (value: number) => String(value) },
      })),
      series: diagrams.flatMap(({ lines, logarithmic }, index) =>
        lines.map(({ name, points }) => ({
          type: 'line' as const,
          name,
          xAxisIndex: index,
          yAxisIndex: index,
          symbolSize: 5,
          // A logarithm of nothing is nowhere.
          data: points.filter(([, value]) => !logarithmic || value > 0).map(([bytes, value]) => [bytes, value]),
        })),
      ),
    })
    return chart.renderToSVGString()
  } finally {
    chart.dispose()
  }
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

/** Only with `--svg`: it is large, and on most machines that measure nobody needs it. */
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
