import {
  type DType,
  type ElementType,
  elementLayout,
  isArray,
  isDType,
  isStructType,
  type MemoryLike,
  type StructInput,
  type StructType,
  wrongType,
} from '@shoal/types'
import type { ElementValue } from '../memory/elements.js'

/** The type of one kernel parameter: a scalar, a struct of `defineStruct`, or `'ptr'` for an address. */
export type KernelParameter = ElementType | 'ptr'

/** The types of a kernel's parameters, in order, such as `['f32', 'ptr', 'ptr', 'i32']`. */
export type KernelSignature = readonly KernelParameter[]

/** What a `'ptr'` parameter takes: memory, a bare device address, or null. */
export type PointerValue = MemoryLike | bigint | null

/** What a parameter of type `P` takes: for a struct, an object with its fields. */
export type KernelArgument<P extends KernelParameter> = P extends DType
  ? ElementValue<P>
  : P extends StructType<infer F>
    ? StructInput<F>
    : PointerValue

/** What a kernel of signature `S` takes. */
export type KernelArguments<S extends KernelSignature> = { readonly [I in keyof S]: KernelArgument<S[I]> }

/** A frozen copy of a signature. @throws TypeError */
export function requireSignature<S extends KernelSignature>(value: S, api: string): S {
  if (!isArray(value)) throw wrongType(api, 'signature', "an array such as ['f32', 'ptr']", value)
  const signature: readonly unknown[] = Object.freeze([...value])
  for (const [index, parameter] of signature.entries()) {
    if (parameter === 'ptr' || isDType(parameter) || isStructType(parameter)) continue
    throw wrongType(api, `signature[${index}]`, "a dtype, 'ptr' or a struct of defineStruct", parameter)
  }
  return signature as S
}

/** Bytes of a parameter as the image declares it. */
export function parameterBytes(parameter: KernelParameter): number {
  return parameter === 'ptr' ? 8 : elementLayout(parameter).bytes
}

/** A parameter's type as text: the dtype, `ptr`, or the name of the struct. */
export function parameterName(parameter: KernelParameter): string {
  return typeof parameter === 'object' ? parameter.name : parameter
}
