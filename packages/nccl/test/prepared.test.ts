import { inspect } from 'node:util'
import { Communicator, group, groupOffThread, type PreparedCollective, PreparedGroup, prepareGroup } from '@shoal/nccl'
import { DisposedError } from '@shoal/types'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { DeviceBuffer, Stream } = await import('@shoal/cuda-base')
const { TestDevice } = await import('../../cuda-base/test/support.js')
type Buffer = import('@shoal/cuda-base').DeviceBuffer<'f32'>

const devices = [new TestDevice(0), new TestDevice(1)]
let communicators: Communicator[] = []
let streams: import('@shoal/cuda-base').Stream[] = []
let buffers: Buffer[] = []

beforeEach(async () => {
  communicators = await Communicator.initAll([0, 1])
  streams = devices.map((device) => Stream.create(device, { nonBlocking: true }))
  buffers = devices.map((device, rank) => DeviceBuffer.from(device, Float32Array.of(rank + 1, 10)))
})

afterEach(async () => {
  for (const communicator of communicators) await communicator.destroy()
  for (const object of [...buffers, ...streams]) object.dispose()
})

const ranks = [0, 1] as const
function inPlace(rank: number): PreparedCollective {
  const [communicator, buffer, stream] = [communicators[rank], buffers[rank], streams[rank]]
  return (communicator as Communicator).prepareAllReduce(buffer as Buffer, buffer as Buffer, {
    op: 'sum',
    stream: stream as never,
  })
}
const contents = (): number[][] => buffers.map((buffer, rank) => [...buffer.toArraySync({ stream: streams[rank] })])

describe('a prepared collective', () => {
  test('is queued by each launch, with what its memory holds then', () => {
    const prepared = ranks.map(inPlace)
    for (const sum of [3, 6, 12]) {
      group(() => {
        for (const one of prepared) one.launch()
      })
      expect(contents().map(([first]) => first)).toEqual([sum, sum])
    }
    expect(inspect(prepared[0])).toBe("PreparedCollective { operation: 'ncclAllReduce' }")
  })

  test('exists of all four that ranks do alike', () => {
    const wide = devices.map((device) => DeviceBuffer.zeros(device, 'f32', 4))
    const narrow = devices.map((device) => DeviceBuffer.zeros(device, 'f32', 1))
    const halves = devices.map((device, rank) => DeviceBuffer.from(device, Float32Array.of(rank + 1, 10 * (rank + 1))))
    const make = (of: (rank: number, communicator: Communicator, stream: never) => PreparedCollective): void => {
      prepareGroup(ranks.map((rank) => of(rank, communicators[rank] as Communicator, streams[rank] as never))).launch()
    }
    const at = <T>(list: readonly T[], rank: number): T => list[rank] as T
    const read = (list: readonly Buffer[]): number[][] =>
      list.map((buffer, rank) => [...buffer.toArraySync({ stream: streams[rank] })])
    make((rank, communicator, stream) => communicator.prepareAllGather(at(halves, rank), at(wide, rank), { stream }))
    expect(read(wide)).toEqual([
      [1, 10, 2, 20],
      [1, 10, 2, 20],
    ])
    make((rank, communicator, stream) =>
      communicator.prepareReduceScatter(at(halves, rank), at(narrow, rank), { stream }),
    )
    expect(read(narrow)).toEqual([[3], [30]])
    make((rank, communicator, stream) => communicator.prepareAllToAll(at(halves, rank), at(buffers, rank), { stream }))
    expect(read(buffers)).toEqual([
      [1, 2],
      [10, 20],
    ])
    for (const buffer of [...wide, ...narrow, ...halves]) buffer.dispose()
  })

  test('refuses wrong arguments by its own name, and later what is gone', async () => {
    const [communicator, buffer, stream] = [communicators[0] as Communicator, buffers[0] as Buffer, streams[0] as never]
    expect(() => communicator.prepareAllReduce(buffer, buffers[1] as Buffer, { stream })).toThrow(
      'Communicator.prepareAllReduce: recv',
    )
    expect(() => communicator.prepareAllGather(buffer, buffer, { stream, root: 1 } as never)).toThrow(
      "Communicator.prepareAllGather: options must have only the keys stream, count, dtype, not 'root'",
    )
    const prepared = inPlace(0)
    buffer.dispose()
    expect(() => prepared.launch()).toThrow(DisposedError)
    const other = inPlace(1)
    await communicators[1]?.destroy()
    expect(() => other.launch()).toThrow(DisposedError)
  })
})

describe('what is gone when a prepared collective is launched', () => {
  test.each([
    ['a communicator that was destroyed', () => communicators[0]?.destroy()],
    ['a communicator that was aborted', () => communicators[0]?.abort()],
    ['its memory', () => buffers[0]?.dispose()],
    ['its stream', () => streams[0]?.dispose()],
  ] as const)('%s', async (_, end) => {
    const prepared = ranks.map(inPlace) as [PreparedCollective, PreparedCollective]
    const together = prepareGroup(prepared)
    together.launch()
    expect(contents().map(([first]) => first)).toEqual([3, 3])
    await end()
    const thrown = (fn: () => void): unknown => {
      try {
        fn()
      } catch (error) {
        return (error as { code?: unknown }).code
      }
      return 'nothing'
    }
    const launches = [() => prepared[0].launch(), () => together.launch(), () => group(() => prepared[0].launch())]
    expect(launches.map(thrown)).toEqual(['SHOAL_DISPOSED', 'SHOAL_DISPOSED', 'SHOAL_DISPOSED'])
    // Nothing of the group was started: the other rank waits for nobody.
    streams[1]?.synchronizeSync()
    expect([...(buffers[1] as Buffer).toArraySync({ stream: streams[1] })][0]).toBe(3)
  })
})

describe('a prepared group', () => {
  test('starts its collectives together, as often as it is launched', () => {
    const step = prepareGroup(ranks.map(inPlace))
    for (const sum of [3, 6, 12, 24, 48]) {
      step.launch()
      expect(contents().map(([first]) => first)).toEqual([sum, sum])
    }
    expect(inspect(step)).toBe('PreparedGroup { collectives: 2 }')
    expect(step).toBeInstanceOf(PreparedGroup)
  })

  test('becomes part of a group around it, also of one on another thread', async () => {
    const step = prepareGroup(ranks.map(inPlace))
    step.launch()
    group(() => {
      step.launch()
      for (const rank of ranks) inPlace(rank).launch()
    })
    expect(contents().map(([first]) => first)).toEqual([12, 12])
    await groupOffThread(() => step.launch())
    expect(contents().map(([first]) => first)).toEqual([24, 24])
    step.launch()
    expect(contents().map(([first]) => first)).toEqual([48, 48])
  })

  test('starts nothing where one of its buffers, streams or communicators is gone', async () => {
    const step = prepareGroup(ranks.map(inPlace))
    step.launch()
    step.launch()
    const [first, second] = contents()
    expect(first).toEqual(second)
    buffers[1]?.dispose()
    expect(() => step.launch()).toThrow(DisposedError)
    expect([...(buffers[0] as Buffer).toArraySync({ stream: streams[0] })]).toEqual(first)
    buffers[1] = DeviceBuffer.from(devices[1] as never, Float32Array.of(1, 1))
    const again = prepareGroup(ranks.map(inPlace))
    again.launch()
    again.launch()
    streams[0]?.dispose()
    expect(() => again.launch()).toThrow(DisposedError)
    streams[0] = Stream.create(devices[0] as never)
    const last = prepareGroup(ranks.map(inPlace))
    last.launch()
    await communicators[0]?.destroy()
    expect(() => last.launch()).toThrow(DisposedError)
  })

  test('refuses ranks that ask for different things, and anything but prepared collectives', () => {
    const max = (communicators[1] as Communicator).prepareAllReduce(buffers[1] as Buffer, buffers[1] as Buffer, {
      op: 'max',
      stream: streams[1] as never,
    })
    expect(() => prepareGroup([inPlace(0), max]).launch()).toThrow(
      'all ranks of a communicator call the same operation',
    )
    expect(() => prepareGroup([{} as never])).toThrow('prepareGroup: collectives[0] must be a PreparedCollective')
    expect(() => prepareGroup(5 as never)).toThrow('prepareGroup: collectives must be an array')
    prepareGroup([]).launch()
  })
})
