import {
  type CUdevice,
  cuDeviceGet,
  cuDeviceGetCount,
  cuDevicePrimaryCtxRelease,
  cuDevicePrimaryCtxRetain,
  cuInit,
} from '@shoal/cuda-sys/driver'
import { NativeMemory, offThread } from '@shoal/ffi'
import { checkCuda } from '../errors.js'

/** A hold on the primary context of a device, which is where NVSHMEM works. */
export interface PrimaryContext {
  readonly ordinal: number
  readonly device: CUdevice
  readonly handle: bigint
}

/**
 * Starting the driver and making a context take up to a second, so all of it runs off the JavaScript thread.
 *
 * @throws RangeError for a device that is not there, StatusError when the driver refuses.
 */
export async function retainPrimaryContext(ordinal: number, api: string): Promise<PrimaryContext> {
  const out = NativeMemory.allocate(8)
  try {
    const [started, counted] = await offThread({ keep: [out] }, () => {
      cuInit(0)
      cuDeviceGetCount(out)
    })
    checkCuda(started, 'cuInit')
    checkCuda(counted, 'cuDeviceGetCount')
    const available = out.i32[0] ?? 0
    if (ordinal >= available) {
      throw new RangeError(
        `${api}: there is no device ${ordinal}, this machine has ${available} (0 … ${available - 1})`,
      )
    }
    checkCuda(cuDeviceGet(out, ordinal), 'cuDeviceGet')
    const device = out.i32[0] as CUdevice
    const [retained] = await offThread({ keep: [out] }, () => cuDevicePrimaryCtxRetain(out, device))
    checkCuda(retained, 'cuDevicePrimaryCtxRetain')
    return { ordinal, device, handle: out.u64[0] ?? 0n }
  } finally {
    out.dispose()
  }
}

/** Gives the hold back. A context that goes away with its last hold may take long to do so. */
export async function releasePrimaryContext(context: PrimaryContext): Promise<void> {
  const [status] = await offThread({}, () => cuDevicePrimaryCtxRelease(context.device))
  checkCuda(status, 'cuDevicePrimaryCtxRelease')
}
