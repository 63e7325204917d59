import {
  type CUdevice,
  cuDeviceGet,
  cuDeviceGetCount,
  cuDevicePrimaryCtxRelease,
  cuDevicePrimaryCtxRetain,
  cuInit,
} from '@shoal/cuda-sys/driver'
import { NativeMemory, offThread } from '@shoal/ffi'
import { check } from '../errors.js'

/** One hold on a device's primary context, for NCCL or NVSHMEM. */
export interface PrimaryContext {
  readonly ordinal: number
  /** `CUdevice` */
  readonly device: CUdevice
  /** `CUcontext` */
  readonly handle: bigint
}

let holds = 0

/** Whether communicators or sessions exist. Their work on a device may never complete. */
export function hasHolds(): boolean {
  return holds > 0
}

/**
 * Retains the primary context of each device, or none if one fails. Runs on a native thread, because starting the
 * driver and creating a context take up to a second.
 *
 * @throws RangeError for a device that does not exist, StatusError when the driver refuses
 */
export async function retainPrimaryContexts(ordinals: readonly number[], api: string): Promise<PrimaryContext[]> {
  const count = ordinals.length
  const deviceCount = NativeMemory.allocate(4)
  const devices = NativeMemory.allocate(4 * count)
  const contexts = NativeMemory.allocate(8 * count)
  try {
    checkAll(
      ['cuInit', 'cuDeviceGetCount'],
      await offThread({ keep: [deviceCount] }, () => {
        cuInit(0)
        cuDeviceGetCount(deviceCount)
      }),
    )
    const available = deviceCount.i32[0] ?? 0
    for (const ordinal of ordinals) {
      if (ordinal >= available) {
        throw new RangeError(
          `${api}: there is no device ${ordinal}, this machine has ${available} (0 … ${available - 1})`,
        )
      }
    }
    checkAll(
      ordinals.map(() => 'cuDeviceGet'),
      await offThread({ keep: [devices] }, () => {
        for (const [index, ordinal] of ordinals.entries()) cuDeviceGet(devices.address + BigInt(4 * index), ordinal)
      }),
    )
    const statuses = await offThread({ keep: [contexts] }, () => {
      for (let index = 0; index < count; index += 1) {
        cuDevicePrimaryCtxRetain(contexts.address + BigInt(8 * index), devices.i32[index] as CUdevice)
      }
    })
    const retained: PrimaryContext[] = []
    for (const [index, ordinal] of ordinals.entries()) {
      if (statuses[index] === 0) {
        retained.push({ ordinal, device: devices.i32[index] as CUdevice, handle: contexts.u64[index] ?? 0n })
      }
    }
    holds += retained.length
    if (retained.length < count) {
      await releasePrimaryContexts(retained)
      checkAll(
        ordinals.map(() => 'cuDevicePrimaryCtxRetain'),
        statuses,
      )
    }
    return retained
  } finally {
    deviceCount.dispose()
    devices.dispose()
    contexts.dispose()
  }
}

/** Releases the holds. Releasing the last hold destroys the context, which can take long. */
export async function releasePrimaryContexts(contexts: readonly PrimaryContext[]): Promise<void> {
  if (contexts.length === 0) return
  holds -= contexts.length
  const statuses = await offThread({ stopOnError: false }, () => {
    for (const context of contexts) cuDevicePrimaryCtxRelease(context.device)
  })
  checkAll(
    contexts.map(() => 'cuDevicePrimaryCtxRelease'),
    statuses,
  )
}

function checkAll(apis: readonly string[], statuses: readonly number[]): void {
  for (const [index, api] of apis.entries()) {
    const status = statuses[index]
    // A missing status means that an earlier call failed. That status has thrown already.
    if (status !== undefined) check(status, api)
  }
}
