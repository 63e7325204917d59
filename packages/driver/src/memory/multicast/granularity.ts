import {
  type CUdevice,
  CUdevice_attribute,
  type CUmemAllocationHandleType,
  CUmulticastGranularity_flags,
  CUmulticastObjectProp,
  cuDeviceGet,
  cuDeviceGetAttribute,
  cuDeviceGetCount,
  cuMulticastGetGranularity,
} from '@shoal/cuda-sys/driver'
import {
  FeatureNotSupportedError,
  type OptionKeys,
  type OwnedArrayOf,
  requireInteger,
  requireKeyOf,
  requireOptions,
} from '@shoal/types'
import type { Device } from '../../core/device/device.js'
import { check, Status } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import { driverVersion, startDriver } from '../../core/start.js'
import { type HandleKind, handleKindBits } from '../handles/handleKinds.js'
import type { Granularity } from '../vmm/properties.js'

/** Properties of a new multicast object. */
export interface MulticastProperties {
  /** Number of devices that will be added. */
  readonly deviceCount: number
  /** Size in bytes, a multiple of {@link multicastGranularity}. */
  readonly byteLength: number
  /** Kinds of handle for exporting the object. Default: none. */
  readonly handleTypes?: HandleKind | readonly HandleKind[] | undefined
  /** Flags for the driver. Current drivers accept only 0. Default: 0. */
  readonly flags?: number | undefined
}

const propertyKeys: OptionKeys<MulticastProperties> = {
  deviceCount: true,
  byteLength: true,
  handleTypes: true,
  flags: true,
}

/** Checked properties. */
export interface ResolvedMulticast {
  /** The `CUmulticastObjectProp`. */
  readonly struct: OwnedArrayOf<'u8'>
  readonly deviceCount: number
  readonly byteLength: number
  readonly handleTypes: CUmemAllocationHandleType
}

/** Checks and encodes the properties. @throws TypeError, RangeError */
export function resolveMulticast(properties: MulticastProperties, api: string): ResolvedMulticast {
  const given = requireOptions<MulticastProperties>(properties, api, propertyKeys, 'properties')
  const deviceCount = requireInteger(given.deviceCount, api, 'deviceCount', 1, 0xffff_ffff)
  const byteLength = requireInteger(given.byteLength, api, 'byteLength', 1)
  const handleTypes = handleKindBits(given.handleTypes === undefined ? [] : given.handleTypes, api)
  const struct = CUmulticastObjectProp.allocate({
    numDevices: deviceCount,
    size: BigInt(byteLength),
    handleTypes: BigInt(handleTypes),
    flags: BigInt(requireInteger(given.flags === undefined ? 0 : given.flags, api, 'flags', 0)),
  })
  return { struct, deviceCount, byteLength, handleTypes }
}

const firstVersion = 12010

/**
 * Throws if multicast is not available, and names what is missing: the driver's version or the device's attribute.
 * @throws FeatureNotSupportedError
 */
export function requireMulticast(device?: Device): void {
  startDriver()
  const version = driverVersion()
  if (version.value < firstVersion) throw unsupported(`the driver is for CUDA ${version}; they came with 12.1`)
  if (device !== undefined && !hasMulticast(device.handle)) {
    throw unsupported(`device ${device.ordinal} does not have the attribute MULTICAST_SUPPORTED`)
  }
}

/**
 * Throws if no device has multicast, because the driver's own error is only "not supported".
 * @throws FeatureNotSupportedError
 */
function requireAnyDevice(): void {
  const out = scratch()
  check(cuDeviceGetCount(out), 'cuDeviceGetCount')
  const count = out.i32[0] as number
  for (let ordinal = 0; ordinal < count; ordinal += 1) {
    check(cuDeviceGet(out, ordinal), 'cuDeviceGet')
    if (hasMulticast(out.i32[0] as CUdevice)) return
  }
  throw unsupported('no device has the attribute MULTICAST_SUPPORTED')
}

function hasMulticast(device: CUdevice): boolean {
  const out = scratch()
  const attribute = CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
  check(cuDeviceGetAttribute(out, attribute, device), 'cuDeviceGetAttribute')
  return out.i32[0] !== 0
}

function unsupported(reason: string): FeatureNotSupportedError {
  return new FeatureNotSupportedError({
    library: 'NVIDIA CUDA driver',
    api: 'multicast objects',
    reason,
    since: '12.1',
    installed: driverVersion().toString(),
  })
}

const granularityCodes: { readonly [G in Granularity]: CUmulticastGranularity_flags } = {
  minimum: CUmulticastGranularity_flags.CU_MULTICAST_GRANULARITY_MINIMUM,
  recommended: CUmulticastGranularity_flags.CU_MULTICAST_GRANULARITY_RECOMMENDED,
}

/**
 * Returns the granularity for sizes and offsets of a multicast object, in bytes (`cuMulticastGetGranularity`).
 * @throws TypeError, RangeError; FeatureNotSupportedError below CUDA 12.1, or when no device has multicast
 */
export function multicastGranularity(
  properties: MulticastProperties,
  granularity: Granularity = 'recommended',
): number {
  requireMulticast()
  const api = 'multicastGranularity'
  return granularityOfMulticast(resolveMulticast(properties, api), api, granularity)
}

/** {@link multicastGranularity} for checked properties. */
export function granularityOfMulticast(
  { struct }: ResolvedMulticast,
  api: string,
  granularity: Granularity = 'minimum',
): number {
  const code = requireKeyOf(granularity, api, 'granularity', granularityCodes)
  const out = scratch()
  const status: number = cuMulticastGetGranularity(out, struct, code)
  if (status === Status.notSupported) requireAnyDevice()
  check(status, 'cuMulticastGetGranularity')
  return Number(out.u64[0])
}
