// Tests rows of pitched memory as graph nodes, and regions in place of elements.
import { describe, expect, test } from 'vitest'
import { randomArray, randomInteger } from './support/elements.js'
import { device, other, second, stream } from './support/graphObjects.js'

const { DeviceBuffer, PinnedBuffer, prepareCopies } = await import('@shoal/driver')
const { PitchedBuffer } = await import('@shoal/driver/memory')
const { copyNode, fillNode, Graph } = await import('@shoal/driver/graph')

type Extent = { readonly width: number; readonly height: number; readonly depth: number }
type Place = Extent & { readonly x: number; readonly y: number; readonly z: number }

const dtypes = ['u8', 'u16', 'f32', 'complex64', 'complex128'] as const
/** Returns the numbers per element. */
const parts = (dtype: string): number => (dtype.startsWith('complex') ? 2 : 1)

const randomExtent = (): Extent => ({
  width: randomInteger(1, 40),
  height: randomInteger(1, 9),
  depth: randomInteger(1, 4),
})

function randomPlace({ width, height, depth }: Extent): Place {
  const [x, y, z] = [randomInteger(0, width - 1), randomInteger(0, height - 1), randomInteger(0, depth - 1)]
  return {
    ...{ x, y, z },
    width: randomInteger(1, width - x),
    height: randomInteger(1, height - y),
    depth: randomInteger(1, depth - z),
  }
}

/** Returns the array indices of all numbers in a part, row by row. */
function indicesOf({ width, height }: Extent, place: Place, perElement: number): number[] {
  const found: number[] = []
  for (let z = 0; z < place.depth; z += 1)
    for (let y = 0; y < place.height; y += 1)
      for (let x = 0; x < place.width * perElement; x += 1)
        found.push(((place.z + z) * height + place.y + y) * width * perElement + place.x * perElement + x)
  return found
}

function run(add: (graph: InstanceType<typeof Graph>) => unknown): void {
  using graph = Graph.create(device)
  add(graph)
  using step = graph.instantiate()
  step.launch(stream)
  stream.synchronizeSync()
}

describe('copyNode', () => {
  test.each(dtypes)('copies only the rows of regions of %s', (dtype) => {
    for (let round = 0; round < 10; round += 1) {
      const [whole, perElement] = [randomExtent(), parts(dtype)]
      const place = randomPlace(whole)
      const count = whole.width * whole.height * whole.depth
      const [theirs, ours] = [randomArray(dtype, count), randomArray(dtype, count)]
      using source = PitchedBuffer.from(round % 2 === 0 ? device : second, theirs, { ...whole, dtype } as never)
      using target = PitchedBuffer.from(device, ours, { ...whole, dtype } as never)
      run((graph) => graph.add(copyNode(target.region(place), source.region(place))))
      for (const at of indicesOf(whole, place, perElement)) ours[at] = theirs[at] as never
      expect(target.toArraySync()).toEqual(ours)
    }
  })

  test('copies between rows and contiguous memory, on the device or page-locked', () => {
    const whole = { width: 37, height: 5, depth: 3 }
    const place = { x: 3, y: 1, z: 1, width: 21, height: 3, depth: 2 }
    const count = place.width * place.height * place.depth
    const values = randomArray('i32', count)
    using image = PitchedBuffer.zeros(device, 'i32', whole)
    using dense = DeviceBuffer.from(device, values)
    using pinned = PinnedBuffer.allocate(device, 'i32', count)
    const region = image.region(place)
    run((graph) => {
      const up = graph.add(copyNode(region, dense))
      graph.add(copyNode(pinned, region), { dependencies: [up] })
    })
    expect(pinned.array).toEqual(values)
    const expected = new Int32Array(37 * 5 * 3)
    for (const [index, at] of indicesOf(whole, place, 1).entries()) expected[at] = values[index] as number
    expect(image.toArraySync()).toEqual(expected)
  })

  test('refuses ends that do not fit, and disposed memory', () => {
    using image = PitchedBuffer.zeros(device, 'i32', { width: 4, height: 3 })
    using short = DeviceBuffer.zeros(device, 'i32', 11)
    using floats = DeviceBuffer.zeros(device, 'f32', 12)
    expect(() => copyNode(image, image.region({ width: 2 }))).toThrow(
      /^copyNode: source must be of 4 × 3 × 1 elements \(region\(\) takes parts\), not '2 × 3 × 1'/,
    )
    expect(() => copyNode(short, image)).toThrow(
      'copyNode: target must be of 48 bytes, as many as all rows have, not 44',
    )
    expect(() => copyNode(image, floats)).toThrow("copyNode: source must be of i32 (reinterpret() it), not 'f32'")
    expect(() => copyNode(image, new Int32Array(12) as never)).toThrow(/^copyNode: source must be device, page-locked/)
    const gone = PitchedBuffer.zeros(device, 'i32', { width: 4, height: 3 })
    using graph = Graph.create(device)
    const described = copyNode(image, gone)
    graph.add(described)
    gone.dispose()
    expect(() => graph.instantiate()).toThrow(/disposed/)
    expect(() => graph.add(described)).toThrow(/disposed/)
  })
})

describe('fillNode', () => {
  test.each([
    ['u8', 7],
    ['u16', 0xabcd],
    ['f32', 1.5],
    ['i64', -1n],
  ] as const)('writes %s only to the rows of a region', (dtype, value) => {
    for (let round = 0; round < 10; round += 1) {
      const whole = { ...randomExtent(), depth: 1 }
      const place = randomPlace(whole)
      const all = randomArray(dtype, whole.width * whole.height)
      using image = PitchedBuffer.from(device, all as never, { ...whole, dtype } as never)
      run((graph) => graph.add(fillNode(image.region(place) as never, value as never)))
      for (const at of indicesOf(whole, place, 1)) all[at] = value as never
      expect(image.toArraySync()).toEqual(all)
    }
  })

  test('fills adjacent slices, and refuses separated ones', () => {
    using volume = PitchedBuffer.zeros(device, 'f32', { width: 5, height: 3, depth: 4 })
    run((graph) => graph.add(fillNode(volume.region({ x: 1, width: 3, z: 1, depth: 2 }), 2)))
    const expected = new Float32Array(60)
    for (const at of indicesOf(volume, { x: 1, y: 0, z: 1, width: 3, height: 3, depth: 2 }, 1)) expected[at] = 2
    expect(volume.toArraySync()).toEqual(expected)
    expect(() => fillNode(volume.region({ height: 2 }), 2)).toThrow(
      "fillNode: buffer must be of slices without other rows between them (a node a slice), not '2 of 3 rows'",
    )
  })
})

test('a region is refused as contiguous elements, because its rows contain foreign elements', () => {
  using image = PitchedBuffer.zeros(device, 'i32', { width: 4, height: 3 })
  const region = image.region({ x: 1, width: 2, height: 2 })
  const message = /must be contiguous, not with strides \[\d+,1\] for a shape of \[2,2\]: copy it first/
  const bytes = image.pitch + 8
  using flat = DeviceBuffer.zeros(device, 'u8', bytes)
  expect(() => prepareCopies(device, [{ target: flat, source: region }])).toThrow(message)
  expect(() => prepareCopies(device, [{ target: region, source: flat }])).toThrow(message)
  expect(() => flat.copyFrom(region, { stream: other })).toThrow(message)
})
