// The reasons why some symbols of NVRTC and nvJitLink are not bound.
import type { UnboundSpec } from '../spec/types.js'

/** nvJitLink exports each function under its name, and again under a name per release of its major version. */
export const releaseAlias =
  'a function that is bound, under the name of one release; inline functions of the header call it'

const undeclared = {
  exported: true,
  nature: 'function',
  reason: 'no header declares it, and what it is for is not known',
} as const

export const unboundByCompiler: Readonly<Record<'nvrtc' | 'nvjitlink', readonly UnboundSpec[]>> = {
  nvrtc: [
    { symbol: '__nvrtcCPEx', ...undeclared },
    {
      symbol: 'nvrtcGetTypeName',
      exported: false,
      nature: 'inline',
      reason: 'a template of C++ that names a type of the program that includes it; no library has it',
    },
  ],
  nvjitlink: [{ symbol: '__nvJitLinkAPI', ...undeclared }],
}
