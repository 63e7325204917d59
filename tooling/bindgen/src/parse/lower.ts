import type { IntegerKind, Lowered } from '../spec/types.js'
import { type CType, parseType } from './ctypes.js'
import { type Declarations, plainName } from './declarations.js'
import type { Layouts } from './layouts.js'

/** 64-bit integer typedefs that identify an object. */
const objectName = /(Handle|Object|TexObject|SurfObject)(_t)?$/

/** `void *` typedefs that identify an object of another API. */
const opaquePointer = /^(EGL(Image|Stream|Sync)KHR|HGPUNV)$/

/** True if a typedef of `void *` identifies an object and not memory. */
export function isOpaquePointer(chain: readonly string[]): boolean {
  return chain.some((name) => opaquePointer.test(name))
}

/** 32-bit integer typedefs that identify an object. */
const numberedObject = /^Vdp(Device|VideoSurface|OutputSurface)$/

/** The library's name for a handle, without version suffixes. */
export function handleName(chain: readonly string[]): string {
  return plainName(
    chain.filter((name) => !/_v\d+$/.test(name)).length > 0 ? chain.filter((name) => !/_v\d+$/.test(name)) : chain,
  )
}

export function lowerType(declarations: Declarations, layouts: Layouts, text: string, isParameter: boolean): Lowered {
  const type = parseType(text)
  const { target, chain } = declarations.resolve(type)
  switch (target.kind) {
    case 'void':
      return { kind: 'void' }
    case 'size':
      return { kind: 'size' }
    case 'bool':
      return { kind: 'bool' }
    case 'float':
      return { kind: 'float', type: target.type }
    case 'integer':
      return lowerInteger(target.type, chain)
    case 'enum': {
      const signed = isSignedEnum(target.enum.members)
      return { kind: 'enum', type: plainName(target.enum.names), signed }
    }
    case 'callback':
      if (chain.length > 0) return { kind: 'callback', type: handleName(chain) }
      // A pointer to a function typedef. In other cases, the typedef itself is the pointer.
      if (type.kind === 'pointer' && type.to.kind === 'name') return { kind: 'callback', type: type.to.name }
      return { kind: 'pointer' }
    case 'record': {
      const { size, alignment } = layouts.of(target.record)
      return { kind: 'struct', type: plainName(target.record.names), size, alignment }
    }
    case 'array':
      return { kind: 'pointer' }
    case 'pointer': {
      if (isOpaquePointer(chain) || (chain.length > 0 && isOpaque(declarations, target.to)))
        return { kind: 'handle', type: handleName(chain) }
      if (isParameter && isConstChar(target.to)) return { kind: 'cstring' }
      return { kind: 'pointer' }
    }
  }
}

export function isSignedEnum(members: readonly [string, bigint][]): boolean {
  return members.every(([, value]) => value <= 0x7fff_ffffn)
}

export function lowerInteger(type: IntegerKind, chain: readonly string[]): Lowered {
  if (type === 'u64' && chain.some((name) => /^CUdeviceptr/.test(name)))
    return { kind: 'deviceptr', type: 'CUdeviceptr' }
  if (type === 'u64' && chain.some((name) => objectName.test(name))) return { kind: 'handle', type: handleName(chain) }
  const brand = chain.find((name) => numberedObject.test(name))
  return { kind: 'integer', type, ...(brand === undefined ? {} : { brand }) }
}

/** True if only the library knows the content of the pointer's target. */
export function isOpaque(declarations: Declarations, type: CType): boolean {
  if (type.kind !== 'tag' && type.kind !== 'name') return false
  const { target } = declarations.resolve(type)
  return target.kind === 'record' && !target.record.complete
}

function isConstChar(type: CType): boolean {
  return type.kind === 'name' && type.name === 'char' && type.const
}
