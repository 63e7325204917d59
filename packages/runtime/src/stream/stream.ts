import { type StreamOptions as BaseOptions, Stream as BaseStream } from '@shoal/driver/shared'
import { type DeviceLike, type StreamArgument, toStreamHandle } from '@shoal/types'
import { type DeviceOption, deviceOrCurrent, ownerAndRest } from '../device/currentDevice.js'
import { withFactories } from '../withFactories.js'

/** How a stream is made. */
export interface StreamOptions extends BaseOptions, DeviceOption {}

/** A queue of work on a device: what is queued is done in order, and beside what other streams do. */
export type Stream = BaseStream
export const Stream = withFactories(BaseStream, {
  /** Makes a stream on the current device, or the one named (`cudaStreamCreateWithPriority`). */
  create(options: StreamOptions = {}): Stream {
    return BaseStream.create(...ownerAndRest(options, 'Stream.create'))
  },

  /**
   * A stream of `@shoal/driver` or of another library as one of this package: a `CUstream` and a `cudaStream_t` are the
   * same handle, and the other object keeps it. A descriptor, a handle and `null` for the default stream are taken too.
   * A stream that does not name its device is taken to be of the current device.
   * @throws TypeError for what is no stream, or one of a context that is not its device's primary one.
   */
  from(stream: StreamArgument): Stream {
    const { deviceOrdinal } = toStreamHandle(stream, 'Stream.from')
    return BaseStream.from(deviceOrCurrent(deviceOrdinal < 0 ? undefined : deviceOrdinal, 'Stream.from'), stream)
  },

  /** The stream that work goes to when none is named: the legacy or the per-thread one, see `setStreamMode`. */
  defaultOf(device?: DeviceLike | number): Stream {
    return BaseStream.borrow(deviceOrCurrent(device, 'Stream.defaultOf'), 0n)
  },

  /**
   * A stream somebody else made and destroys, by its handle; `0n` is the default stream of the current stream mode.
   * @param device Default: the current device.
   */
  borrow(handle: bigint, device?: DeviceLike | number): Stream {
    return BaseStream.borrow(deviceOrCurrent(device, 'Stream.borrow'), handle)
  },

  /** Takes over a stream somebody else made: dispose() destroys it. */
  adopt(handle: bigint, device?: DeviceLike | number): Stream {
    return BaseStream.adopt(deviceOrCurrent(device, 'Stream.adopt'), handle)
  },
})
