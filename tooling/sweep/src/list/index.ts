// All groups of the sweep.
import type { DeviceLibraryName } from '@shoal/bindgen/dist/spec/types.js'
import type { Spec } from '../spec.js'
import { ncclGroups, nvshmemGroups } from './communication.js'
import { driverGroups } from './driver.js'
import { runtimeGroups } from './runtime.js'
import type { Group } from './steps.js'

const makers: Record<DeviceLibraryName, (spec: Spec) => Group[]> = {
  driver: driverGroups,
  runtime: runtimeGroups,
  nccl: ncclGroups,
  nvshmem: nvshmemGroups,
}

/** The groups of a library, always the same for the same spec. */
export function groupsOf(spec: Spec): Group[] {
  return makers[spec.library](spec)
}
