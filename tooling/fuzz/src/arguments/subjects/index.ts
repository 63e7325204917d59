import { compileSubject, nvjitlinkSubject, nvrtcSubject } from './compilers.js'
import { cudaSubject } from './cuda.js'
import { diagnosticsSubject } from './diagnostics.js'
import { contextSubject, dlpackSubject, externalSubject, memorySubject, sharingSubject } from './entries.js'
import { ffiSubject } from './ffi.js'
import { graphSubject } from './graph.js'
import { launchSubject } from './launch.js'
import { librarySubject } from './library.js'
import { ncclSubject } from './nccl.js'
import { nvshmemSubject } from './nvshmem.js'
import { general, type Subject } from './subject.js'
import { textureSubject } from './texture.js'
import { typesSubject } from './types.js'

const subjects: { readonly [packageName: string]: () => Promise<Subject> } = {
  driver: () => cudaSubject('driver'),
  'driver/memory': () => memorySubject('driver'),
  'driver/context': () => contextSubject('driver'),
  'driver/external': () => externalSubject('driver'),
  'driver/dlpack': () => dlpackSubject('driver'),
  'driver/sharing': () => sharingSubject('driver'),
  'driver/diagnostics': () => diagnosticsSubject('driver'),
  'driver/graph': () => graphSubject('driver', general),
  'driver/texture': () => textureSubject('driver', general),
  'driver/library': () => librarySubject('driver'),
  'driver/compile': compileSubject,
  runtime: () => cudaSubject('runtime'),
  'runtime/memory': () => memorySubject('runtime'),
  'runtime/context': () => contextSubject('runtime'),
  'runtime/external': () => externalSubject('runtime'),
  'runtime/dlpack': () => dlpackSubject('runtime'),
  'runtime/sharing': () => sharingSubject('runtime'),
  'runtime/diagnostics': () => diagnosticsSubject('runtime'),
  'runtime/graph': () => graphSubject('runtime', general),
  'runtime/texture': () => textureSubject('runtime', general),
  'runtime/library': () => librarySubject('runtime'),
  nccl: ncclSubject,
  nvshmem: nvshmemSubject,
  nvrtc: nvrtcSubject,
  nvjitlink: nvjitlinkSubject,
  launch: launchSubject,
  ffi: ffiSubject,
  types: typesSubject,
}

export const sweptPackages: readonly string[] = Object.keys(subjects)

export function subjectOf(packageName: string): Promise<Subject> {
  const make = subjects[packageName]
  if (make === undefined)
    throw new RangeError(`runArgumentSweep: packages must be of ${sweptPackages.join(', ')}, not ${packageName}`)
  return make()
}
