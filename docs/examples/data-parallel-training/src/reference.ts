// The data, and the same network in TypeScript, whose results the kernels must match.
export const inputs = 4
export const hidden = 16

/** Parameters of the network: weights and biases of the hidden layer, weights and bias of the output. */
export const parameterCount = hidden * inputs + hidden + hidden + 1

/** Examples, one after the other: `inputs` numbers each, and what the network should make of them. */
export interface Examples {
  readonly x: Float64Array
  readonly y: Float64Array
}

/** The same numbers for the same seed, from -1 to 1. */
function generator(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 31 - 1
  }
}

export function initialParameters(seed: number): Float64Array {
  const next = generator(seed)
  return Float64Array.from({ length: parameterCount }, () => next() / 2)
}

/** A function of four variables that the network is to learn. */
export function makeExamples(count: number, seed: number): Examples {
  const next = generator(seed ^ 0x9e3779b9)
  const x = Float64Array.from({ length: count * inputs }, next)
  const y = Float64Array.from({ length: count }, (_, i) => {
    const [a = 0, b = 0, c = 0, d = 0] = x.subarray(i * inputs, (i + 1) * inputs)
    return Math.sin(2 * a) * b + c * d - a / 2
  })
  return { x, y }
}

/** The part of the examples that one of several ranks has; parts differ by at most one example. */
export function partOf({ x, y }: Examples, rank: number, ranks: number): Examples {
  const [first, end] = [Math.floor((y.length * rank) / ranks), Math.floor((y.length * (rank + 1)) / ranks)]
  return { x: x.subarray(first * inputs, end * inputs), y: y.subarray(first, end) }
}

/**
 * Sums over the examples: the gradient of the squared error by every parameter, then the squared error itself. Sums,
 * not means, so that adding up what ranks with unequal parts have is right.
 */
export function gradientSums(parameters: Float64Array, { x, y }: Examples): Float64Array {
  const sums = new Float64Array(parameterCount + 1)
  const [bias1, weights2, bias2] = [hidden * inputs, hidden * inputs + hidden, hidden * inputs + 2 * hidden]
  const activations = new Float64Array(hidden)
  const at = (array: Float64Array, index: number): number => array[index] as number
  for (let example = 0; example < y.length; example += 1) {
    let output = at(parameters, bias2)
    for (let j = 0; j < hidden; j += 1) {
      let sum = at(parameters, bias1 + j)
      for (let i = 0; i < inputs; i += 1) sum += at(parameters, j * inputs + i) * at(x, example * inputs + i)
      activations[j] = Math.tanh(sum)
      output += at(parameters, weights2 + j) * at(activations, j)
    }
    const error = output - at(y, example)
    const add = (index: number, value: number): void => {
      sums[index] = at(sums, index) + value
    }
    add(parameterCount, error * error)
    add(bias2, 2 * error)
    for (let j = 0; j < hidden; j += 1) {
      const activation = at(activations, j)
      add(weights2 + j, 2 * error * activation)
      const back = 2 * error * at(parameters, weights2 + j) * (1 - activation * activation)
      add(bias1 + j, back)
      for (let i = 0; i < inputs; i += 1) add(j * inputs + i, back * at(x, example * inputs + i))
    }
  }
  return sums
}

/** One step downhill; gives back the mean squared error before it. */
export function descend(parameters: Float64Array, sums: ArrayLike<number>, examples: number, rate: number): number {
  for (let i = 0; i < parameterCount; i += 1) {
    parameters[i] = (parameters[i] as number) - (rate * (sums[i] as number)) / examples
  }
  return (sums[parameterCount] as number) / examples
}
