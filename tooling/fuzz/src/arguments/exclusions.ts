import type { Callable } from './contract.js'
import { apiOf } from './subjects/subject.js'

/** Functions that the sweep does not call, with the reason. */
const exclusions: readonly (readonly [packages: RegExp, api: RegExp, why: string])[] = [
  [/./, /Error$|Error\./, 'errors are made by those who found one'],
  [
    /types/,
    /^(?:contiguousStrides|spanOf|isInstance|propertyOf|fieldCodec|nameErrorClass|formatLoadAttempts|isStickyCudaStatus|wrongType|outOfRange|inspectLine|settledNow|settleInTime|defineUnprinted|withJson|answerOf|foreignThis|isProxy)$/,
    'parts of other functions',
  ],
  [/types/, /^LibraryVersion/, 'an abstract class'],
  [
    /./,
    /^new (?!(?:\w+Handle|Program|ProcessCheckpoint|Linker)$)/,
    'constructors.test.ts asks what only packages call',
  ],
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
  [/driver|runtime/, /^new Linker$/, 'the same'],
  [/dlpack/, /^fromDLPack$/, 'takes an address at its word: what is no tensor ends the process; its tests ask it'],
  [/sharing/, /^SharedMemory\./, 'needs another process; its tests ask it'],
  [/nvrtc/, /^Compiled\./, 'there is none without NVRTC; its tests ask it'],
]

/** Returns the reason not to call a function, or undefined if the sweep calls it. */
export function excluded(packageName: string, callable: Callable): string | undefined {
  const api = apiOf(callable)
  return exclusions.find(([packages, pattern]) => packages.test(packageName) && pattern.test(api))?.[2]
}
