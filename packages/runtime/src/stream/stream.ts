import { type StreamOptions as BaseOptions, Stream as BaseStream } from '@shoal/driver/shared'
import { type DeviceLike, type StreamArgument, toStreamHandle } from '@shoal/types'
import { type DeviceOption, deviceOrCurrent, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** Options of a stream. */
export interface StreamOptions extends BaseOptions, DeviceOption {}

/**
 * A queue of work on a device. Work runs in order, concurrently with other streams.
 *
 * @example
 * using stream = Stream.create({ nonBlocking: true })
 * x.fill(0, { stream }) // returns immediately
 * await stream.synchronize() // never blocks the event loop
 */
export type Stream = BaseStream
export const Stream = withFactories(BaseStream, {
  /** Creates a stream on the current or the given device (`cudaStreamCreateWithPriority`). */
  create(options: StreamOptions = {}): Stream {
    return BaseStream.create(...ownerAndRest(options, 'Stream.create'))
  },

  /**
   * Returns a stream of `@shoal/driver` or another library as a stream of this package.
   *
   * A `CUstream` and a `cudaStream_t` are the same handle; the other object still owns it. Also accepts a descriptor, a
   * handle, and `null` for the default stream. A stream without a device is assumed to belong to the current device.
   * @throws TypeError for a value that is not a stream, or a stream of a context other than its device's primary
   * context.
   */
  from(stream: StreamArgument): Stream {
    const { deviceOrdinal } = toStreamHandle(stream, 'Stream.from')
    return BaseStream.from(deviceOrCurrent(deviceOrdinal < 0 ? undefined : deviceOrdinal, 'Stream.from'), stream)
  },

  /** Returns the default stream, legacy or per-thread; see `setStreamMode`. */
  defaultOf(device?: DeviceLike | number): Stream {
    return BaseStream.borrow(deviceOrCurrent(device, 'Stream.defaultOf'), 0n)
  },

  /**
   * Wraps a stream of another owner by its handle, without destroying it.
   *
   * `0n` is the default stream of the current stream mode.
   * @param device Default: the current device.
   */
  borrow(handle: bigint, device?: DeviceLike | number): Stream {
    return BaseStream.borrow(deviceOrCurrent(device, 'Stream.borrow'), handle)
  },

  /** Takes ownership of a stream that was created elsewhere: dispose() destroys it. */
  adopt(handle: bigint, device?: DeviceLike | number): Stream {
    return BaseStream.adopt(deviceOrCurrent(device, 'Stream.adopt'), handle)
  },
})
