// The questions for the CUDA runtime.
import type { Spec } from '../spec.js'
import { runtimeArrays } from './arrays.js'
import { runtimeDevice } from './devices.js'
import { runtimeEntryPoints } from './entryPoints.js'
import { runtimeErrors } from './errors.js'
import { runtimeFunctions } from './functions.js'
import { runtimeGraphs } from './graphs.js'
import { runtimePeers } from './peers.js'
import { runtimePointers } from './pointers.js'
import { runtimePools } from './pools.js'
import type { Group } from './steps.js'
import { runtimeStreams } from './streams.js'

export function runtimeGroups(spec: Spec): Group[] {
  const builders = [
    runtimeErrors(spec),
    runtimeDevice(spec),
    runtimePools(spec),
    runtimeStreams(spec),
    runtimePointers(spec),
    runtimeArrays(spec),
    runtimeGraphs(spec),
    runtimeEntryPoints(spec),
    runtimePeers(spec),
    runtimeFunctions(spec),
  ]
  return builders.map((builder) => builder.build())
}
