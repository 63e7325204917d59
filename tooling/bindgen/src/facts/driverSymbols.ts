import type { UnboundSpec } from '../spec/types.js'

/** Functions that the headers declare but libcuda of desktop and server drivers does not export. */
export const absent: Readonly<Record<string, string>> = {
  cuEventCreateFromEGLSync: 'In drivers of embedded devices; libcuda 580.159 for x86-64 does not export it.',
}

/** State and hooks that a debugger finds by name in another process. They are not for use within the process. */
const debuggerSymbol = /^cudbg/

/** The functions among them; all others are variables. */
const debuggerFunctions =
  /^cudbg(ApiAttach|ApiDetach|ApiInit|GetAPI|GetAPIVersion|Main|ReportDriverApiError|ReportDriverInternalError)$/

const undeclared = 'no header declares it, so that its signature is not known'

/** Symbols that libcuda exports or a header defines, and that are not bound. */
export const unboundDriver = (exported: ReadonlySet<string>): UnboundSpec[] => [
  { symbol: 'cuEGLApiInit', exported: true, nature: 'function', reason: undeclared },
  { symbol: 'cuMemGetAttribute', exported: true, nature: 'function', reason: undeclared },
  { symbol: 'cuMemGetAttribute_v2', exported: true, nature: 'function', reason: undeclared },
  {
    symbol: 'cuGetProcAddress_v2_ptsz',
    exported: false,
    nature: 'inline',
    reason: 'cuda.h defines it, for C code compiled in per-thread mode: cuGetProcAddress with the flag of that mode',
  },
  ...[...exported]
    .filter((symbol) => debuggerSymbol.test(symbol))
    .map(
      (symbol): UnboundSpec => ({
        symbol,
        exported: true,
        nature: debuggerFunctions.test(symbol) ? 'function' : 'data',
        reason:
          'part of the debugger interface, which a debugger uses from another process; cuda.h does not declare it',
      }),
    ),
]
