import { type Layout, layoutOf, type ModelSize, startOf, type Training } from './model.js'

/** A matrix of a computation, and how a gradient goes back through what made it. */
interface Matrix {
  readonly rows: number
  readonly columns: number
  readonly data: Float64Array
  readonly gradient: Float64Array
}

/**
 * The same model in double precision, from elementary operations whose derivatives are put together by the chain rule:
 * slow, and independent of the kernels. A training must reach the same losses.
 */
export class Reference {
  readonly weights: Float64Array
  readonly #size: ModelSize
  readonly #layout: Layout
  readonly #training: Training
  readonly #text: Int32Array
  readonly #means: Float64Array
  readonly #squares: Float64Array
  #done = 0
  #back: (() => void)[] = []

  /** `training.batch`: sequences of a step, on all ranks together. */
  constructor(size: ModelSize, training: Training, text: Int32Array, weights: ArrayLike<number>) {
    this.#size = size
    this.#layout = layoutOf(size)
    this.#training = training
    this.#text = text
    this.weights = Float64Array.from(weights)
    this.#means = new Float64Array(weights.length)
    this.#squares = new Float64Array(weights.length)
  }

  /** Does one step and gives its loss. */
  step(): number {
    this.#back = []
    const { context } = this.#size
    const { batch, seed } = this.#training
    const parameters = new Map(
      this.#layout.all.map(({ name, offset, rows, columns }) => {
        const data = this.weights.slice(offset, offset + rows * columns)
        return [name, { rows, columns, data, gradient: new Float64Array(data.length) }]
      }),
    )
    let sum = 0
    for (let sequence = 0; sequence < batch; sequence += 1) {
      const start = startOf(sequence, this.#done, seed, this.#text.length, context)
      const part = this.#text.subarray(start, start + context + 1)
      sum += this.#loss(parameters, part.subarray(0, context), part.subarray(1), 1 / (batch * context))
    }
    for (const goBack of this.#back.reverse()) goBack()
    for (const { name, offset } of this.#layout.all) {
      const gradient = parameters.get(name)?.gradient ?? []
      for (const [index, value] of gradient.entries()) this.#descend(offset + index, value)
    }
    this.#done += 1
    return sum
  }

  #descend(index: number, gradient: number): void {
    const { rate, decay, warmup, until } = this.#training
    const done = this.#done
    const gone = Math.min(1, Math.max(0, (done - warmup) / Math.max(1, until - warmup)))
    const now = done < warmup ? (rate * (done + 1)) / warmup : rate * (0.55 + 0.45 * Math.cos(Math.PI * gone))
    const mean = 0.9 * at(this.#means, index) + 0.1 * gradient
    const square = 0.99 * at(this.#squares, index) + 0.01 * gradient * gradient
    this.#means[index] = mean
    this.#squares[index] = square
    const direction = mean / (1 - 0.9 ** (done + 1)) / (Math.sqrt(square / (1 - 0.99 ** (done + 1))) + 1e-8)
    const decayed = index < this.#layout.matrices ? decay * at(this.weights, index) : 0
    this.weights[index] = at(this.weights, index) - now * (direction + decayed)
  }

  /** Returns the loss of one sequence and the function that adds its gradients. */
  #loss(parameters: ReadonlyMap<string, Matrix>, tokens: Int32Array, targets: Int32Array, scale: number): number {
    const { width, heads, layers } = this.#size
    const named = (name: string): Matrix => parameters.get(name) as Matrix
    const places = tokens.map((_, index) => index)
    let x = this.#add(this.#pickRows(named('characters'), tokens), this.#pickRows(named('positions'), places))
    const head = width / heads
    for (let layer = 0; layer < layers; layer += 1) {
      const qkv = this.#multiply(this.#normalize(x, named(`gain${2 * layer}`)), named(`qkv${layer}`))
      const attended = Array.from({ length: heads }, (_, index) => {
        const [q, k, v] = [0, 1, 2].map((part) => this.#columns(qkv, part * width + index * head, head)) as Three
        const scores = this.#map(
          this.#multiply(q, this.#turned(k)),
          (value) => value / Math.sqrt(head),
          () => 1 / Math.sqrt(head),
        )
        return this.#multiply(this.#softmaxOfPast(scores), v)
      })
      x = this.#add(x, this.#multiply(this.#beside(attended), named(`join${layer}`)))
      const inner = this.#multiply(this.#normalize(x, named(`gain${2 * layer + 1}`)), named(`up${layer}`))
      x = this.#add(x, this.#multiply(this.#map(inner, gelu, geluSlope), named(`down${layer}`)))
    }
    const logits = this.#multiply(this.#normalize(x, named(`gain${2 * layers}`)), named('head'))
    let sum = 0
    for (const [row, target] of targets.entries()) {
      const values = logits.data.subarray(row * logits.columns, (row + 1) * logits.columns)
      const most = Math.max(...values)
      const total = values.reduce((total, value) => total + Math.exp(value - most), 0)
      sum += scale * (most + Math.log(total) - at(values, target))
      for (const [column, value] of values.entries()) {
        const share = Math.exp(value - most) / total - (column === target ? 1 : 0)
        logits.gradient[row * logits.columns + column] = scale * share
      }
    }
    return sum
  }

  #multiply(a: Matrix, b: Matrix): Matrix {
    const out = zeros(a.rows, b.columns)
    addProduct(out.data, a, a.data, b, b.data)
    this.#back.push(() => {
      addProduct(a.gradient, out, out.gradient, turnedShape(b), turned(b, b.data))
      addProduct(b.gradient, turnedShape(a), turned(a, a.data), out, out.gradient)
    })
    return out
  }

  #add(a: Matrix, b: Matrix): Matrix {
    const out = zeros(a.rows, a.columns)
    for (const index of out.data.keys()) out.data[index] = at(a.data, index) + at(b.data, index)
    this.#back.push(() => {
      for (const [index, value] of out.gradient.entries()) {
        a.gradient[index] = at(a.gradient, index) + value
        b.gradient[index] = at(b.gradient, index) + value
      }
    })
    return out
  }

  #map(a: Matrix, value: (x: number) => number, slope: (x: number) => number): Matrix {
    const out = zeros(a.rows, a.columns)
    for (const [index, x] of a.data.entries()) out.data[index] = value(x)
    this.#back.push(() => {
      for (const [index, x] of a.data.entries()) {
        a.gradient[index] = at(a.gradient, index) + at(out.gradient, index) * slope(x)
      }
    })
    return out
  }

  /** Elements of a matrix in other places: `from` says which one stands at an index. */
  #moved(a: Matrix, rows: number, columns: number, from: (row: number, column: number) => number): Matrix {
    const out = zeros(rows, columns)
    for (const index of out.data.keys()) {
      out.data[index] = at(a.data, from(Math.floor(index / columns), index % columns))
    }
    this.#back.push(() => {
      for (const [index, value] of out.gradient.entries()) {
        const source = from(Math.floor(index / columns), index % columns)
        a.gradient[source] = at(a.gradient, source) + value
      }
    })
    return out
  }

  #pickRows(a: Matrix, rows: Int32Array): Matrix {
    return this.#moved(a, rows.length, a.columns, (row, column) => at(rows, row) * a.columns + column)
  }

  #columns(a: Matrix, first: number, count: number): Matrix {
    return this.#moved(a, a.rows, count, (row, column) => row * a.columns + first + column)
  }

  #turned(a: Matrix): Matrix {
    return this.#moved(a, a.columns, a.rows, (row, column) => column * a.columns + row)
  }

  #beside(parts: readonly Matrix[]): Matrix {
    const { rows, columns } = parts[0] as Matrix
    const all = columns * parts.length
    const out = zeros(rows, all)
    const copy = (go: (part: Matrix, index: number, outIndex: number) => void): void => {
      for (const [number, part] of parts.entries()) {
        for (const index of part.data.keys()) {
          go(part, index, Math.floor(index / columns) * all + number * columns + (index % columns))
        }
      }
    }
    copy((part, index, outIndex) => {
      out.data[outIndex] = at(part.data, index)
    })
    this.#back.push(() =>
      copy((part, index, outIndex) => {
        part.gradient[index] = at(part.gradient, index) + at(out.gradient, outIndex)
      }),
    )
    return out
  }

  /** Each row divided by its sum of exponentials, without what lies in the future. */
  #softmaxOfPast(scores: Matrix): Matrix {
    const exponentials = this.#map(scores, Math.exp, Math.exp)
    const { rows, columns } = scores
    const past = this.#times(
      exponentials,
      constant(rows, columns, (row, column) => (column <= row ? 1 : 0)),
    )
    const sums = this.#multiply(
      past,
      constant(columns, 1, () => 1),
    )
    return this.#times(past, this.#spread(this.#reciprocal(sums, 1), columns))
  }

  #normalize(x: Matrix, gain: Matrix): Matrix {
    const { rows, columns } = x
    const mean = constant(columns, 1, () => -1 / columns)
    const centred = this.#add(x, this.#spread(this.#multiply(x, mean), columns))
    const variance = this.#multiply(
      this.#times(centred, centred),
      constant(columns, 1, () => 1 / columns),
    )
    const normal = this.#times(centred, this.#spread(this.#reciprocal(variance, 0.5, 1e-5), columns))
    return this.#times(
      normal,
      this.#multiply(
        constant(rows, 1, () => 1),
        gain,
      ),
    )
  }

  #times(a: Matrix, b: Matrix): Matrix {
    const out = zeros(a.rows, a.columns)
    for (const index of out.data.keys()) out.data[index] = at(a.data, index) * at(b.data, index)
    this.#back.push(() => {
      for (const [index, value] of out.gradient.entries()) {
        a.gradient[index] = at(a.gradient, index) + value * at(b.data, index)
        b.gradient[index] = at(b.gradient, index) + value * at(a.data, index)
      }
    })
    return out
  }

  #spread(column: Matrix, columns: number): Matrix {
    return this.#multiply(
      column,
      constant(1, columns, () => 1),
    )
  }

  #reciprocal(a: Matrix, power: number, added = 0): Matrix {
    return this.#map(
      a,
      (x) => (x + added) ** -power,
      (x) => -power * (x + added) ** (-power - 1),
    )
  }
}

type Three = [Matrix, Matrix, Matrix]

const at = (array: ArrayLike<number>, index: number): number => array[index] as number
const rootOf2OverPi = Math.sqrt(2 / Math.PI)

function gelu(x: number): number {
  return 0.5 * x * (1 + Math.tanh(rootOf2OverPi * (x + 0.044715 * x ** 3)))
}

function geluSlope(x: number): number {
  const tangent = Math.tanh(rootOf2OverPi * (x + 0.044715 * x ** 3))
  return 0.5 * (1 + tangent) + 0.5 * x * (1 - tangent ** 2) * rootOf2OverPi * (1 + 3 * 0.044715 * x ** 2)
}

function zeros(rows: number, columns: number): Matrix {
  return { rows, columns, data: new Float64Array(rows * columns), gradient: new Float64Array(rows * columns) }
}

function constant(rows: number, columns: number, value: (row: number, column: number) => number): Matrix {
  const out = zeros(rows, columns)
  for (const index of out.data.keys()) out.data[index] = value(Math.floor(index / columns), index % columns)
  return out
}

type Shape = Pick<Matrix, 'rows' | 'columns'>

const turnedShape = ({ rows, columns }: Shape): Shape => ({ rows: columns, columns: rows })

function turned({ rows, columns }: Shape, data: Float64Array): Float64Array {
  return Float64Array.from(data, (_, index) => at(data, (index % rows) * columns + Math.floor(index / rows)))
}

/** out += a * b */
function addProduct(out: Float64Array, a: Shape, aData: Float64Array, b: Shape, bData: Float64Array): void {
  for (let row = 0; row < a.rows; row += 1) {
    for (let k = 0; k < a.columns; k += 1) {
      const factor = at(aData, row * a.columns + k)
      for (let column = 0; column < b.columns; column += 1) {
        const index = row * b.columns + column
        out[index] = at(out, index) + factor * at(bData, k * b.columns + column)
      }
    }
  }
}
