import { inspect } from 'node:util'
import { type Communicator, group, groupOffThread, PreparedGroup, prepareGroup } from '@shoal/nccl'
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

const { DeviceBuffer, Stream } = await import('@shoal/driver/shared')

describe('a PreparedGroup', () => {
  test('starts its collectives together at each launch', () => {
    const step = prepareGroup(ranks.map(inPlace))
    for (const sum of [3, 6, 12, 24, 48]) {
      step.launch()
      expect(contents().map(([first]) => first)).toEqual([sum, sum])
    }
    expect(inspect(step)).toBe('PreparedGroup { collectives: 2 }')
    expect(step).toBeInstanceOf(PreparedGroup)
  })

  test('joins a surrounding group, also one on another thread', async () => {
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

  test('starts nothing if one of its buffers, streams or communicators was disposed', async () => {
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

  test('refuses ranks with different operations, and everything except prepared collectives', () => {
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
