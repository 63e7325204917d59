import { firstSizes, fixedSizes, isArray } from '../facts/arrays.js'
import type { History } from '../spec/history.js'
import { type ParameterSpec, type PointeeSpec, scalarBytes } from '../spec/types.js'
import { type CType, parseType } from './ctypes.js'
import { type Declarations, plainName } from './declarations.js'
import type { Layouts } from './layouts.js'

/**
 * The target of a pointer parameter, if its C type has a size. Bytes (`char *`, `uint8_t *`) and `void *` are memory of
 * any size. Targets that only the library knows have no size.
 */
export function pointeeOf(
  declarations: Declarations,
  layouts: Layouts,
  functionName: string,
  parameters: readonly ParameterSpec[],
  parameter: ParameterSpec,
  history: History,
): PointeeSpec | undefined {
  if (parameter.lowered.kind !== 'pointer') return undefined
  const fixed = fixedSizes[`${functionName}.${parameter.name}`]
  if (fixed !== undefined) return { size: fixed }
  const { target } = declarations.resolve(parseType(parameter.ctype))
  if (target.kind === 'array') {
    const size = sizeOf(declarations, layouts, target.of, true)
    return size === undefined ? undefined : { size: size * Math.max(target.count, 1) }
  }
  if (target.kind !== 'pointer') return undefined
  const size = sizeOf(declarations, layouts, target.to, false)
  if (size === undefined) return undefined
  return isArray(functionName, parameters, parameter, history) ? { size, array: true } : { size }
}

function sizeOf(declarations: Declarations, layouts: Layouts, type: CType, countsBytes: boolean): number | undefined {
  const { target } = declarations.resolve(type)
  switch (target.kind) {
    case 'void':
      return undefined
    case 'integer': {
      const width = scalarBytes(target.type)
      return width === 1 && !countsBytes ? undefined : width
    }
    case 'float':
      return scalarBytes(target.type)
    case 'bool':
      return 1
    case 'enum':
      return 4
    case 'size':
    case 'callback':
    case 'pointer':
      return 8
    case 'record':
      return firstSizes[plainName(target.record.names)] ?? layouts.all.get(target.record)?.size
    case 'array': {
      const element = sizeOf(declarations, layouts, target.of, true)
      return element === undefined ? undefined : element * target.count
    }
  }
}
