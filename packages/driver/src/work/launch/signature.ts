import {
  type CompoundInputOf,
  type CompoundType,
  type DType,
  type ElementType,
  elementLayout,
  isArray,
  isCompoundType,
  isDType,
  type MemoryLike,
  propertyOf,
  requireAddress,
  wrongType,
} from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import type { ElementValue } from '../../memory/buffers/elements.js'

/** Parameters that are objects of the entry `texture`, which encode themselves. */
export type KernelObjectType = 'texture' | 'surface' | 'tensorMap'

/**
 * The type of one kernel parameter: a scalar; a type of `defineStruct`, `defineArray` or `defineTuple`; `'ptr'` for an
 * address; `'texture'` or `'surface'` for C's `cudaTextureObject_t` and `cudaSurfaceObject_t`; or `'tensorMap'` for a
 * `CUtensorMap`.
 */
export type KernelParameter = ElementType | 'ptr' | KernelObjectType

/** The types of a kernel's parameters in order, such as `['f32', 'ptr', 'ptr', 'i32']`. */
export type KernelSignature = readonly KernelParameter[]

/** The argument for a `'ptr'` parameter: memory, a raw device address, or null. */
export type PointerValue = MemoryLike | bigint | null

/** A texture, a surface or a tensor map. */
export interface KernelObject<T extends KernelObjectType = KernelObjectType> {
  /** The parameter type of this object. */
  readonly parameterType: T
}

/**
 * The argument for a parameter of type `P`. For a struct, array or tuple: a value, or the bytes from its `encode`. For
 * a texture or surface: also a raw handle.
 */
export type KernelArgument<P extends KernelParameter> = P extends DType
  ? ElementValue<P>
  : P extends CompoundType
    ? CompoundInputOf<P> | Uint8Array
    : P extends 'tensorMap'
      ? KernelObject<P>
      : P extends KernelObjectType
        ? KernelObject<P> | bigint
        : PointerValue

/** The arguments for signature `S`. */
export type KernelArguments<S extends KernelSignature> = { readonly [I in keyof S]: KernelArgument<S[I]> }

/** Returns a checked and frozen copy of a signature. @throws TypeError */
export function requireSignature<S extends KernelSignature>(value: S, api: string): S {
  if (!isArray(value)) throw wrongType(api, 'signature', "an array such as ['f32', 'ptr']", value)
  const signature: readonly unknown[] = Object.freeze([...value])
  for (const [index, parameter] of signature.entries()) {
    if (isReference(parameter) || isDType(parameter) || isCompoundType(parameter)) continue
    const expected =
      "a dtype, 'ptr', 'texture', 'surface', 'tensorMap' or a type of defineStruct, defineArray or defineTuple"
    throw wrongType(api, `signature[${index}]`, expected, parameter)
  }
  return signature as S
}

const objectNames = { texture: 'a TextureObject', surface: 'a SurfaceObject', tensorMap: 'a TensorMap' } as const

/** Whether arguments of the type are objects. */
export function isObjectType(parameter: unknown): parameter is KernelObjectType {
  return typeof parameter === 'string' && Object.hasOwn(objectNames, parameter)
}

/** Whether arguments of the type stand for a resource that must exist when the kernel runs. */
export function isReference(parameter: unknown): parameter is KernelObjectType | 'ptr' {
  return parameter === 'ptr' || isObjectType(parameter)
}

/** Returns a parameter's size in bytes, as declared in the image. */
export function parameterBytes(parameter: KernelParameter): number {
  if (isReference(parameter)) return parameter === 'tensorMap' ? tensorMapLayout.bytes : 8
  return elementLayout(parameter).bytes
}

/** Layout of a `CUtensorMap`. */
export const tensorMapLayout = { bytes: 128, alignment: 64 } as const

/** An object that writes itself as an argument. */
interface WritesArgument {
  _writeArgument(target: DataView, offset: number, context: Context, api: string, name: string): void
}

/** Writes a texture, a surface or a tensor map as an argument. @throws TypeError, RangeError, DisposedError */
export function writeObject(
  type: KernelObjectType,
  value: unknown,
  target: DataView,
  offset: number,
  context: Context,
  api: string,
  name: string,
): void {
  if (typeof value === 'bigint' && type !== 'tensorMap') {
    target.setBigUint64(offset, requireAddress(value, api, name), true)
    return
  }
  // Check for properties, because the classes are in another entry of the package.
  if (propertyOf(value, 'parameterType') !== type || typeof propertyOf(value, '_writeArgument') !== 'function') {
    throw wrongType(
      api,
      name,
      type === 'tensorMap' ? objectNames[type] : `${objectNames[type]} or a bigint handle`,
      value,
    )
  }
  ;(value as WritesArgument)._writeArgument(target, offset, context, api, name)
}

/** Returns a parameter type as text: the dtype, `ptr`, or the name of the struct. */
export function parameterName(parameter: KernelParameter): string {
  return typeof parameter === 'object' ? parameter.name : parameter
}
