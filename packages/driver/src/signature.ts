import type { ElementValue } from '@shoal/cuda-base'
import type { DType, MemoryLike } from '@shoal/types'

/** The type of one kernel parameter: a scalar, or `'ptr'` for an address. */
export type KernelParameter = DType | 'ptr'

/** The types of a kernel's parameters, in order, such as `['f32', 'ptr', 'ptr', 'i32']`. */
export type KernelSignature = readonly KernelParameter[]

/** What a `'ptr'` parameter takes: memory, a bare device address, or null. */
export type PointerValue = MemoryLike | bigint | null

/** What a parameter of type `P` takes. */
export type KernelArgument<P extends KernelParameter> = P extends DType ? ElementValue<P> : PointerValue

/** What a kernel of signature `S` takes. */
export type KernelArguments<S extends KernelSignature> = { readonly [I in keyof S]: KernelArgument<S[I]> }
