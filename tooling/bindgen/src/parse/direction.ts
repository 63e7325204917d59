import { cublasDirection } from '../facts/cublas.js'
import type { Direction, Lowered } from '../spec/types.js'
import { parseType } from './ctypes.js'
import type { Declarations } from './declarations.js'

// Headers do not say which pointers the library writes through. `const` decides most cases; the rest is decided by the
// target type and by words in the vendor's names.
const reads = /(Get|Query|Info|Properties|Requirements|Export|Create|Retain|Alloc|Open|Enumerate|GenerateDesc|Split)/
const writes = /(Set|Add|Launch|Update|Batch|Map|Instantiate)/
/** Arrays and records that are only read, although the header omits `const`. */
const inputs =
  /(options?|optionValues|optionsValues|kernelParams|extra|attrs|attrIdxs|sizes|userData|resources|dptrs|srcs|dsts|locs|locIdxs|operations|paramsArray|paramArray|opList|devlist|commIds|ranksList)$/i
/** Parameters that such functions write. */
const reports = /^(failIdx|errorIndex|hErrorNode_out|resultInfo)$/

/**
 * EGL streams: a connect function fills in the connection, and all others use it. Streams to order after are only read.
 */
function ofEglStream(functionName: string, name: string): Direction | undefined {
  const action = /^cu(?:da)?EGLStream(?:Consumer|Producer)(\w+)$/.exec(functionName)?.[1]
  if (action === undefined) return undefined
  if (name === 'conn') return /^Connect/.test(action) ? 'out' : 'in'
  return name === 'pStream' ? 'in' : 'out'
}

/** Exceptions to the rules. */
const settled: Readonly<Record<string, Direction>> = {
  'cuLinkAddData.data': 'in',
  'cuLinkAddData_v2.data': 'in',
  'cuLogsDumpToFile.iterator': 'inout',
  'cuLogsDumpToMemory.iterator': 'inout',
  'cudaLogsDumpToFile.iterator': 'inout',
  'cudaLogsDumpToMemory.iterator': 'inout',
  'cuStreamUpdateCaptureDependencies.dependencies': 'in',
  'cuStreamUpdateCaptureDependencies_v2.dependencies': 'in',
  'cudaStreamUpdateCaptureDependencies.dependencies': 'in',
  'cuThreadExchangeStreamCaptureMode.mode': 'inout',
  'cudaThreadExchangeStreamCaptureMode.mode': 'inout',
  'cudaLaunchKernel.args': 'in',
  'cudaLaunchCooperativeKernel.args': 'in',
  'cudaLaunchKernelExC.args': 'in',
  'cudaGraphAddMemcpyNode1D.dst': 'in',
  'cudaGraphAddMemcpyNodeFromSymbol.dst': 'in',
  // The caller passes the size and version in these structs.
  'ncclCommQueryProperties.props': 'inout',
  'ncclGroupSimulateEnd.simInfo': 'inout',
  'nvrtcDestroyProgram.prog': 'inout',
  'nvJitLinkDestroy.handle': 'inout',
  'nvJitLinkGetLinkedCubin.cubin': 'out',
  'nvJitLinkGetLinkedLTOIR.ltoir': 'out',
  'cuGraphicsResourceGetMappedEglFrame.eglFrame': 'out',
  'cudaGraphicsResourceGetMappedEglFrame.eglFrame': 'out',
}

export function directionOf(
  declarations: Declarations,
  functionName: string,
  name: string,
  ctype: string,
  lowered: Lowered,
): Direction {
  if (lowered.kind !== 'pointer') return 'in'
  const { target } = declarations.resolve(parseType(ctype))
  if (target.kind !== 'pointer' || target.to.const || inputs.test(name)) return 'in'
  if (functionName.startsWith('cublas')) return cublasDirection(functionName, name)
  const known = settled[`${functionName}.${name}`] ?? ofEglStream(functionName, name)
  if (known !== undefined) return known
  if (/Set/.test(functionName) && !/Get|Reset/.test(functionName)) return 'in'
  if (/Batch(Async|MemOp)/.test(functionName)) return reports.test(name) ? 'out' : 'in'
  const to = declarations.resolve(target.to).target
  switch (to.kind) {
    case 'void':
      return /^(dst|recv|out$|value$|data$)/i.test(name) && !/Device$/.test(name) ? 'out' : 'in'
    case 'record':
      if (!to.record.complete) return 'in'
      return reads.test(functionName) && !writes.test(functionName) && !/(params|args|config)$/i.test(name)
        ? 'out'
        : 'in'
    case 'size':
    case 'integer':
      return isCount(functionName, name) ? 'inout' : 'out'
    default:
      return 'out'
  }
}

/** True if a number is the array's length on input and the number of written elements on output. */
function isCount(functionName: string, name: string): boolean {
  return (
    /^(num|nb|count|size|bufferSize)/i.test(name) &&
    /(Edges|Nodes|Dependencies|Dependent|Coredump|Split|Dump)/.test(functionName)
  )
}
