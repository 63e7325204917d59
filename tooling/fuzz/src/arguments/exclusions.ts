import type { Callable } from './contract.js'
import { apiOf } from './subjects/subject.js'

/** What is not asked, and why. */
const exclusions: readonly (readonly [packages: RegExp, api: RegExp, why: string])[] = [
  [/./, /Error$|Error\./, 'errors are made by those who found one'],
  [
    /types/,
    /^(?:contiguousStrides|spanOf|isInstance|propertyOf|fieldCodec|nameErrorClass|formatLoadAttempts|isStickyCudaStatus|wrongType|outOfRange|inspectLine|settledNow|settleInTime|defineUnprinted)$/,
    'parts of other functions',
  ],
  [/types/, /^(?:new )?LibraryVersion/, 'an abstract class'],
  [/./, /^new \w+Version$/, 'versions are made by their factories'],
  [
    /types/,
    /^(?:require[A-Z]|optional[A-Z]|otherCopy|usersWith$|optionsChecker$|refuseForged$)/,
    'checks: their tests ask them',
  ],
  [
    /ffi/,
    /^(?:callInContext|defineStructCodec|defineLibrary|new NativeLibrary|Lane\.nativeOf|NativeLibrary\.bind)/,
    'what generated code calls, with constants',
  ],
  [/ffi/, /^findSoftwareDeviceFrom$/, 'what the command line calls, with a path of its own'],
  [/ffi/, /^(?:inNextTurn|nextTurn)$/, 'timers of Node for the other packages'],
  [/nvshmem/, /^Session\.globalExit$/, 'ends the process; a test of its own asks it'],
  [/nccl/, /^NcclParameter\./, 'the software device has no parameters'],
  [/driver|runtime|ffi/, /^new DescriptorSocket$/, 'made by its factories'],
  [/nccl/, /^new PreparedGroup$/, 'made by prepareGroup'],
  [
    /driver|runtime/,
    /^new (?:PreparedCopies|Graph|GraphNode|NodeDescription|CudaArray|MipmappedArray|(?:Texture|Surface)Object|TensorMap|DeviceResource|CreatedContext|Library|Linker|UserObject)$/,
    'made by their factories',
  ],
  [/dlpack/, /^fromDLPack$/, 'takes an address at its word: what is no tensor ends the process; its tests ask it'],
  [/dlpack|sharing/, /^new (?:DLPackCapsule|DLPackTensor|SharedMemory)$/, 'made by their factories'],
  [/sharing/, /^SharedMemory\./, 'needs another process; its tests ask it'],
  [/nvrtc|nvjitlink/, /^new (?:Compiled|Linked)$/, 'made by compilers'],
  [/nvrtc/, /^Compiled\./, 'there is none without NVRTC; its tests ask it'],
]

/** Why a function is not asked; undefined for one that is. */
export function excluded(packageName: string, callable: Callable): string | undefined {
  const api = apiOf(callable)
  return exclusions.find(([packages, pattern]) => packages.test(packageName) && pattern.test(api))?.[2]
}
