import type { Direction, Lowered } from '../spec/types.js'
import { parseType } from './ctypes.js'
import type { Declarations } from './declarations.js'

// Headers do not say which pointers are written through. `const` settles most; the rest goes by what the target is
// and by the words the vendor uses in names.
const reads = /(Get|Query|Info|Properties|Requirements|Export|Create|Retain|Alloc|Open|Enumerate|GenerateDesc|Split)/
const writes = /(Set|Add|Launch|Update|Batch|Map|Instantiate)/

export function directionOf(
  declarations: Declarations,
  functionName: string,
  name: string,
  ctype: string,
  lowered: Lowered,
): Direction {
  if (lowered.kind !== 'pointer') return 'in'
  const type = parseType(ctype)
  const { target } = declarations.resolve(type)
  if (target.kind !== 'pointer' || target.to.const) return 'in'
  if (/(options?|optionValues|kernelParams|extra|attrs|attrIdxs|sizes|userData)$/i.test(name)) return 'in'
  const to = declarations.resolve(target.to).target
  switch (to.kind) {
    case 'void':
      return /^(dst|recv|out$|value$)/i.test(name) && !/^(dst|recv)Device/.test(name) ? 'out' : 'in'
    case 'record':
      if (!to.record.complete) return 'in'
      return reads.test(functionName) && !writes.test(functionName) && !/params/i.test(name) ? 'out' : 'in'
    case 'size':
    case 'integer':
      return /^(num|nb|count|size)/i.test(name) &&
        reads.test(functionName) &&
        /(Edges|Nodes|Dependencies|Dependent|Coredump|Split|Dump)/.test(functionName)
        ? 'inout'
        : 'out'
    default:
      return 'out'
  }
}
