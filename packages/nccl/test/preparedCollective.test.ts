import { inspect } from 'node:util'
import { type Communicator, group, type PreparedCollective, prepareGroup } from '@shoal/nccl'
import { DisposedError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import {
  type Buffer,
  buffers,
  communicators,
  contents,
  devices,
  inPlace,
  ranks,
  streams,
} from './fixtures/twoPreparedRanks.js'

const { DeviceBuffer } = await import('@shoal/driver/shared')

describe('a PreparedCollective', () => {
  test('is queued by each launch, with the current contents of its memory', () => {
    const prepared = ranks.map(inPlace)
    for (const sum of [3, 6, 12]) {
      group(() => {
        for (const one of prepared) one.launch()
      })
      expect(contents().map(([first]) => first)).toEqual([sum, sum])
    }
    expect(inspect(prepared[0])).toBe("PreparedCollective { operation: 'ncclAllReduce' }")
  })

  test('exists for all four collectives that are the same on every rank', () => {
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

  test('refuses wrong arguments by its method name, and disposed objects at launch', async () => {
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

describe('launching a prepared collective throws for', () => {
  test.each([
    ['a communicator that was destroyed', () => communicators[0]?.destroy()],
    ['a communicator that was aborted', () => communicators[0]?.abort()],
    ['disposed memory', () => buffers[0]?.dispose()],
    ['a disposed stream', () => streams[0]?.dispose()],
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
    // No operation of the group was started, so the other rank does not wait.
    streams[1]?.synchronizeSync()
    expect([...(buffers[1] as Buffer).toArraySync({ stream: streams[1] })][0]).toBe(3)
  })
})
