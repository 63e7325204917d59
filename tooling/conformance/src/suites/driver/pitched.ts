import assert from 'node:assert/strict'
import { type Device, DeviceBuffer, ManagedBuffer, PinnedBuffer, StatusError } from '@shoal/driver'
import { copyNode, fillNode, Graph } from '@shoal/driver/graph'
import { discardBatch, PitchedBuffer, prefetchBatch, prepareCopies3D } from '@shoal/driver/memory'
import { CudaArray } from '@shoal/driver/texture'
import { defineStruct } from '@shoal/types'
import type { CaseContext, Suite } from '../../suite.js'
import { assertSameBits } from '../../support/compare.js'

function extentOf(t: CaseContext) {
  return { width: t.random.integer(1, 700), height: t.random.integer(1, 30), depth: t.random.integer(1, 6) }
}

function numbers(length: number): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length }, (_, index) => index * 0.5 - 7)
}

const Point = defineStruct('Point', { x: 'f32', y: 'f32', z: 'f32', tag: 'u8' })

export const pitchedSuite: Suite = {
  name: 'driver pitched memory',
  cases: [
    {
      name: 'copies of rows and slices in one batch: pitched memory, memory without gaps, arrays and regions of them',
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        for (let turn = 0; turn < 4; turn += 1) {
          const { width, height, depth } = extentOf(t)
          const extent = { width, height, depth }
          const values = t.random.array('u32', width * height * depth)
          using linear = DeviceBuffer.from(t.device, values)
          using pitched = PitchedBuffer.zeros(t.device, 'u32', extent)
          using second = PitchedBuffer.zeros(t.device, 'u32', extent)
          using array = CudaArray.create(t.device, { ...extent, format: 'u32' })
          using other = CudaArray.create(t.device, { ...extent, format: 'u32' })
          using out = DeviceBuffer.zeros(t.device, 'u32', values.length)
          prepareCopies3D(t.device, [
            { target: pitched, source: linear },
            { target: array, source: linear },
          ]).launch({ stream })
          const [x, y, z] = [width, height, depth].map((size) => t.random.integer(0, size - 1)) as [
            number,
            number,
            number,
          ]
          const region = { x, y, z, width: width - x, height: height - y, depth: depth - z }
          prepareCopies3D(t.device, [
            { target: second.region(region), source: pitched.region(region) },
            {
              target: other,
              source: array,
              region: { width: x + 1, height: y + 1, depth: z + 1 },
              at: { x: 0, y: 0, z: 0 },
            },
            { target: out, source: array },
          ]).launch({ stream })
          const within = values.map((value, index) => {
            const [at, row, slice] = [
              index % width,
              Math.floor(index / width) % height,
              Math.floor(index / width / height),
            ]
            return at >= x && row >= y && slice >= z ? value : 0
          })
          assertSameBits(await second.toArray({ stream }), within, 'a region of pitched memory')
          assertSameBits(await out.toArray({ stream }), values, 'an array to memory')
          const corner = { width: x + 1, height: y + 1, depth: z + 1 }
          const taken = await other.toArray({ stream, region: corner })
          const expected = await array.toArray({ stream, region: corner })
          assertSameBits(taken, expected, 'a region of an array')
          // Copies rows with gaps into an array, and back.
          using back = PitchedBuffer.zeros(t.device, 'u32', extent)
          prepareCopies3D(t.device, [{ target: other, source: second }]).launch({ stream })
          prepareCopies3D(t.device, [{ target: back, source: other }]).launch({ stream })
          assertSameBits(await back.toArray({ stream }), within, 'pitched memory to an array and back')
        }
      },
    },
    {
      name: 'rows and slices as nodes of a graph: copies and fills of regions, and nothing beside them',
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        for (let turn = 0; turn < 4; turn += 1) {
          const extent = extentOf(t)
          const { width, height, depth } = extent
          const [x, y, z] = [width, height, depth].map((size) => t.random.integer(0, size - 1)) as [
            number,
            number,
            number,
          ]
          const part = { x, y, z, width: width - x, height: height - y, depth: depth - z }
          const values = t.random.array('u32', width * height * depth)
          const dense = t.random.array('u32', part.width * part.height * part.depth)
          const fill = t.random.integer(0, 2 ** 31)
          using source = PitchedBuffer.from(t.device, values, extent)
          using target = PitchedBuffer.zeros(t.device, 'u32', extent)
          using filled = PitchedBuffer.zeros(t.device, 'u32', extent)
          using flat = DeviceBuffer.from(t.device, dense)
          using back = PinnedBuffer.allocate(t.device, 'u32', dense.length)
          using graph = Graph.create(t.device)
          const copy = graph.add(copyNode(target.region(part), source.region(part)))
          const out = graph.add(copyNode(back, target.region(part)), { dependencies: [copy] })
          graph.add(copyNode(source.region(part), flat), { dependencies: [out] })
          graph.add(fillNode(filled.region({ x, y, width: part.width, height: part.height, depth: 1 }), fill))
          using exec = graph.instantiate()
          exec.launch(stream)
          await stream.synchronize()
          const inPart = (index: number, slices = depth): boolean => {
            const [at, row, slice] = [
              index % width,
              Math.floor(index / width) % height,
              Math.floor(index / width / height),
            ]
            return at >= x && row >= y && (slices === 1 ? slice === 0 : slice >= z)
          }
          let next = 0
          const expected = values.map((value, index) => (inPart(index) ? value : 0))
          assertSameBits(await target.toArray({ stream }), expected, 'a region into a region')
          assertSameBits(
            back.array,
            values.filter((_, index) => inPart(index)),
            'a region into page-locked memory',
          )
          const written = values.map((value, index) => (inPart(index) ? (dense[next++] as number) : value))
          assertSameBits(await source.toArray({ stream }), written, 'memory without gaps into a region')
          const one = values.map((_, index) => (inPart(index, 1) ? fill : 0))
          assertSameBits(await filled.toArray({ stream }), one, 'a region filled')
        }
      },
    },
    {
      name: 'copies of two and three dimensions: arrays, rows, page-locked, managed and linear memory',
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        for (let turn = 0; turn < 8; turn += 1) {
          const extent = extentOf(t)
          const values = numbers(extent.width * extent.height * extent.depth)
          using image = PitchedBuffer.from(t.device, values, extent)
          assert(image.pitch >= extent.width * 4)
          assertSameBits(await image.toArray({ stream }), values, 'to an array')
          assertSameBits(image.toArraySync(), values, 'to an array at once')
          using other = PitchedBuffer.allocate(t.device, 'f32', extent)
          other.copyFrom(await image.toRows({ stream }), { stream })
          assertSameBits(await other.toArray({ stream }), values, 'from rows')
          using pinned = PinnedBuffer.allocate(t.device, 'f32', values.length)
          await other.copyTo(pinned, { stream })
          assertSameBits(pinned.array, values, 'to page-locked memory')
          using linear = DeviceBuffer.allocate(t.device, 'f32', values.length)
          other.copyInto(linear, { stream })
          using third = PitchedBuffer.zeros(t.device, 'f32', extent)
          await stream.synchronize()
          third.copyFromSync(linear)
          assertSameBits(third.toArraySync(), values, 'through linear memory')
          using fourth = PitchedBuffer.zeros(t.device, 'f32', extent)
          fourth.copyFrom(third, { stream })
          assertSameBits(await fourth.toArray({ stream }), values, 'from pitched memory')
          if (t.device.attribute('CONCURRENT_MANAGED_ACCESS') === 0) continue
          using managed = ManagedBuffer.allocate(t.device, 'f32', values.length)
          fourth.copyInto(managed, { stream })
          await stream.synchronize()
          assertSameBits(managed.array, values, 'to managed memory')
        }
      },
    },
    {
      name: 'large copies from and to ordinary arrays',
      async run(t) {
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const extent = { width: 1003, height: 777, depth: 3 }
        const values = numbers(extent.width * extent.height * extent.depth)
        const image = t.own(PitchedBuffer.allocate(t.device, 'f32', extent))
        image.copyFrom(values, { stream })
        assertSameBits(await image.toArray({ stream }), values, 'narrow rows')
        const wide = { width: 2_000_003, height: 3 }
        const many = numbers(wide.width * wide.height)
        const strip = t.own(PitchedBuffer.allocate(t.device, 'f32', wide))
        strip.copyFrom(many, { stream })
        assertSameBits(await strip.toArray({ stream }), many, 'wide rows')
      },
    },
    {
      name: 'fills write every element, of any size, and no gap',
      async run(t) {
        for (const [dtype, value] of [
          ['u8', 7],
          ['u16', 0x1234],
          ['f32', 1.5],
          ['f64', -2.25],
          ['complex128', [1, -1]],
        ] as const) {
          const extent = extentOf(t)
          using image = PitchedBuffer.allocate(t.device, dtype, extent)
          const raw = DeviceBuffer.view(t.device, image, 'u8')
          raw.fillSync(0xee)
          image.fillSync(value as never)
          using expected = DeviceBuffer.allocate(t.device, dtype, image.length).fillSync(value as never)
          assertSameBits(
            image.toArraySync() as Uint8Array,
            expected.toArraySync() as Uint8Array,
            `filled with ${dtype}`,
          )
          const bytes = raw.toArraySync()
          const rowBytes = image.byteLength / (image.height * image.depth)
          for (let row = 0; row + 1 < image.height * image.depth; row += 1) {
            const gap = bytes.subarray(row * image.pitch + rowBytes, (row + 1) * image.pitch)
            assert(gap.every((byte) => byte === 0xee))
          }
        }
      },
    },
    {
      name: 'regions, rows, and structs of the program',
      async run(t) {
        const points = Array.from({ length: 60 }, (_, index) => ({ x: index, y: -index, z: 0.25, tag: index }))
        const cloud = t.own(PitchedBuffer.from(t.device, points, { width: 5, height: 4, depth: 3, dtype: Point }))
        assert.deepEqual(await cloud.toArray(), points)
        assert.deepEqual(await cloud.row(2, 1).toArray(), points.slice(30, 35))
        const one = { x: 9, y: 9, z: 9, tag: 9 }
        cloud.region({ x: 1, y: 2, z: 1, width: 3 }).fillSync(one)
        const expected = points.map((point, index) => {
          const [x, y, z] = [index % 5, Math.floor(index / 5) % 4, Math.floor(index / 20)]
          return x >= 1 && x < 4 && y >= 2 && z >= 1 ? one : point
        })
        assert.deepEqual(await cloud.toArray(), expected)
      },
    },
    {
      name: 'copies between devices, with and without peer access',
      requires: { devices: 2 },
      async run(t) {
        const [first, second] = t.devices as [Device, Device]
        const extent = extentOf(t)
        const values = numbers(extent.width * extent.height * extent.depth)
        const here = t.own(PitchedBuffer.from(first, values, extent))
        const there = t.own(PitchedBuffer.zeros(second, 'f32', extent))
        const stream = t.own(second.createStream({ nonBlocking: true }))
        there.copyFrom(here, { stream })
        assertSameBits(await there.toArray({ stream }), values, 'pitched to pitched')
        const linear = t.own(DeviceBuffer.from(first, values))
        there.fill(0, { stream })
        there.copyFrom(linear, { stream })
        assertSameBits(await there.toArray({ stream }), values, 'linear to pitched')
      },
    },
    {
      name: 'managed memory is moved in batches, each piece to a place of its own',
      async run(t) {
        if (t.device.attribute('CONCURRENT_MANAGED_ACCESS') === 0)
          t.skip('the host must not use managed memory beside it')
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const pieces = Array.from({ length: 5 }, () => t.own(ManagedBuffer.allocate(t.device, 'u32', 1 << 16)))
        for (const [index, piece] of pieces.entries()) piece.array.fill(index)
        const places = pieces.map((_, index) => (index % 2 === 0 ? t.device : ('host' as const)))
        prefetchBatch(
          t.device,
          pieces.map((memory, index) => ({ memory, place: places[index] as Device | 'host' })),
          { stream },
        )
        await stream.synchronize()
        for (const [index, { array, attributes }] of pieces.entries()) {
          assert.equal(attributes.lastPrefetchLocation?.type, index % 2 === 0 ? 'device' : 'host')
          assert(array.every((value) => value === index))
        }
        discardBatch(t.device, pieces, { stream })
        await stream.synchronize()
        for (const piece of pieces) piece.memory.fill(3, { stream })
        await stream.synchronize()
        for (const { array } of pieces) assert(array.every((value) => value === 3))
      },
    },
    {
      name: 'wrong extents, lengths and places are refused, and nothing is lost',
      run(t) {
        const image = t.own(PitchedBuffer.zeros(t.device, 'f32', { width: 4, height: 3 }))
        assert.throws(() => PitchedBuffer.allocate(t.device, 'f32', { width: 0, height: 1 }), RangeError)
        assert.throws(() => PitchedBuffer.allocate(t.device, 'f32', { width: 1.5, height: 1 }), TypeError)
        assert.throws(() => image.copyFrom(new Float32Array(11)), RangeError)
        assert.throws(() => image.copyFrom(new Float64Array(12) as never), TypeError)
        assert.throws(() => image.region({ x: 4 }), RangeError)
        assert.throws(() => image.row(3), RangeError)
        const { total } = t.device.memoryInfo()
        assert.throws(
          () => PitchedBuffer.allocate(t.device, 'u8', { width: 2 ** 20, height: Math.ceil(total / 2 ** 20) * 2 }),
          StatusError,
        )
        assertSameBits(image.toArraySync(), new Float32Array(12), 'as it was')
      },
    },
  ],
}
