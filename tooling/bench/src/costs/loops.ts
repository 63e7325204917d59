import { type Loop, makeDriverCalls, repeat, repeatAwaited } from '@shoal/cli/bench'
import { type Device, DeviceBuffer, Module, PinnedBuffer, type Stream } from '@shoal/driver'
import { kernels, streamsInFlight, threadsOfBlock, tripBytes } from './cases.js'

const tripLength = tripBytes / 4

/** The objects of one stream. */
interface Lane {
  readonly stream: Stream
  readonly buffer: DeviceBuffer<'f32'>
  readonly pinned: PinnedBuffer<'f32'>
  /** The objects of its trips, created once, as in C. */
  readonly part: DeviceBuffer<'f32'>
  readonly array: Float32Array
  readonly options: { readonly stream: Stream }
  readonly config: { readonly grid: number; readonly block: number; readonly stream: Stream }
}

/** The loops for each way to wait, by case and size. Loops that await return promises. */
export interface CostLoops {
  readonly awaited: (test: string, bytes: number) => Loop<Promise<void>> | undefined
  readonly blocking: (test: string, bytes: number) => Loop | undefined
  readonly prepared: (test: string, bytes: number) => Loop<Promise<void>> | undefined
  readonly cached: (test: string) => Loop | undefined
  /** Awaits one round trip on one of the streams. @throws Error if its result is wrong */
  readonly trip: (lane: number) => Promise<void>
  dispose(): Promise<void>
}

/** The operations that a program waits for, through the driver package. `most` is the size of the largest copy. */
export function makeCostLoops(device: Device, most: number): CostLoops {
  const module = Module.loadSync(device, kernels)
  const empty = module.kernel('empty0', [])
  const addOne = module.kernel('addOne', ['ptr', 'u32'])
  // Each short call has its own loop, because V8 inlines a call only into a loop with a single kind of call.
  const short = makeDriverCalls(device)
  const pool = device.createCachingPool()
  const large = Math.max(most, tripBytes) / 4
  const lanes = Array.from({ length: streamsInFlight }, (_, index): Lane => {
    const length = index === 0 ? large : tripBytes / 4
    const stream = device.createStream({ nonBlocking: true })
    const buffer = DeviceBuffer.zeros(device, 'f32', length)
    const pinned = PinnedBuffer.allocate(device, 'f32', length)
    return {
      stream,
      buffer,
      pinned,
      part: buffer.slice(0, tripLength),
      array: pinned.array.subarray(0, tripLength),
      options: { stream },
      config: { grid: tripLength / threadsOfBlock, block: threadsOfBlock, stream },
    }
  })
  const [{ stream, buffer, pinned }] = lanes as [Lane]
  const ordinary = new Float32Array(large)
  const options = { stream }
  const single = { grid: 1, block: 32, stream }
  const plan = empty.prepare(single)
  const ofBytes = (bytes: number) => {
    const length = bytes / 4
    const part = buffer.slice(0, length)
    const config = { grid: Math.ceil(length / threadsOfBlock), block: threadsOfBlock, stream }
    return { part, host: ordinary.subarray(0, length), locked: pinned.array.subarray(0, length), config, length }
  }

  /** The kernel adds 1 to each element per trip, so the elements count trips. This is exact below 2^24. */
  const tripOn = async ({ part, array, options, config }: Lane): Promise<void> => {
    const before = array[tripLength - 1] as number
    part.copyFrom(array, options)
    addOne.launch(config, part, tripLength)
    await part.copyTo(array, options)
    if (array[0] !== before + 1 || array[tripLength - 1] !== before + 1) throw new Error('a round trip lost its data')
    array[0] = 0
    array[tripLength - 1] = 0
  }

  const awaited = (test: string, bytes: number): Loop<Promise<void>> | undefined => {
    const [kind = ''] = test.split(' ')
    const { part, host, locked, config, length } = ofBytes(bytes || tripBytes)
    const tripThrough = (array: Float32Array) => async (): Promise<void> => {
      part.copyFrom(array, options)
      addOne.launch(config, part, length)
      await part.copyTo(array, options)
    }
    const upload = (array: Float32Array) => async (): Promise<void> => {
      part.copyFrom(array, options)
      await stream.synchronize()
    }
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      idle: () => stream.synchronize(),
      launch: () => {
        empty.launch(single)
        return stream.synchronize()
      },
      pinned: tripThrough(locked),
      ordinary: tripThrough(host),
      inFlight: () => Promise.all(lanes.map(tripOn)),
      'up-pinned': upload(locked),
      'up-ordinary': upload(host),
      'down-pinned': () => part.copyTo(locked, options),
      'down-ordinary': () => part.copyTo(host, options),
    }
    const call = calls[kind]
    return call && repeatAwaited(call)
  }

  const blocking = (test: string, bytes: number): Loop | undefined => {
    const [kind = ''] = test.split(' ')
    const { part, host, locked, config, length } = ofBytes(bytes || tripBytes)
    const calls: Readonly<Record<string, () => unknown>> = {
      idle: () => stream.synchronizeSync(),
      launch: () => {
        empty.launch(single)
        stream.synchronizeSync()
      },
      pinned: () => {
        part.copyFrom(locked, options)
        addOne.launch(config, part, length)
        part.copyToSync(locked, options)
      },
      ordinary: () => {
        part.copyFromSync(host, options)
        addOne.launch(config, part, length)
        part.copyToSync(host, options)
      },
      'up-pinned': () => part.copyFromSync(locked, options),
      'up-ordinary': () => part.copyFromSync(host, options),
      'down-pinned': () => part.copyToSync(locked, options),
      'down-ordinary': () => part.copyToSync(host, options),
    }
    const call = calls[kind]
    if (call !== undefined) return repeat(call)
    const loop = short.loops[kind]
    return (
      loop &&
      ((count) => {
        loop(count)
        short.stream.synchronizeSync()
      })
    )
  }

  const prepared = (test: string): Loop<Promise<void>> | undefined =>
    test === 'launch'
      ? repeatAwaited(() => {
          plan.launch()
          return stream.synchronize()
        })
      : undefined

  const cached = (test: string): Loop | undefined =>
    test === 'pool'
      ? (count) => {
          for (let i = 0; i < count; i += 1) pool.allocate(stream, 'u8', 4096).dispose()
          stream.synchronizeSync()
        }
      : undefined

  return {
    awaited,
    blocking,
    prepared,
    cached,
    trip: (lane) => tripOn(lanes[lane % streamsInFlight] as Lane),
    async dispose() {
      for (const { stream } of lanes) await stream.synchronize()
      for (const { stream, buffer, pinned } of lanes) for (const object of [buffer, pinned, stream]) object.dispose()
      for (const object of [pool, short, module]) object.dispose()
    },
  }
}
