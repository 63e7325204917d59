// The questions for the CUDA driver.
import type { Spec } from '../spec.js'
import { driverArrays, driverTextureReferences } from './arrays.js'
import { driverContext, driverCoredump, driverDevice } from './devices.js'
import { driverEntryPoints } from './entryPoints.js'
import { driverErrors } from './errors.js'
import { driverFunctions } from './functions.js'
import { driverGraphs } from './graphs.js'
import { driverPeers } from './peers.js'
import { driverPointers } from './pointers.js'
import { driverPools } from './pools.js'
import type { Group } from './steps.js'
import { driverStreams } from './streams.js'
import { driverGranularity, driverVirtualMemory } from './virtualMemory.js'

export function driverGroups(spec: Spec): Group[] {
  const builders = [
    driverErrors(spec),
    driverDevice(spec),
    driverGranularity(spec),
    driverPools(spec),
    driverContext(spec),
    driverCoredump(spec),
    driverStreams(spec),
    driverPointers(spec),
    driverVirtualMemory(spec),
    driverArrays(spec),
    driverTextureReferences(spec),
    driverGraphs(spec),
    driverEntryPoints(spec),
    driverPeers(spec),
    driverFunctions(spec, 'ptx', 'questions.ptx'),
    driverFunctions(spec, 'cubin', 'questions.sm_90.cubin', 'the cubin is for compute capability 9.0'),
  ]
  return builders.map((builder) => builder.build())
}
