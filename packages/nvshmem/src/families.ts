import * as native from '@shoal/nvshmem-sys'
import { type DType, dtypeInfo } from '@shoal/types'

// NVSHMEM has a function for each type of a family, such as nvshmem_float_put, and the same for elements of a number of
// bits. The table is in their names, so it is not written down a second time here. A test goes through all of it.
const functions = native as unknown as { readonly [name: string]: unknown }

/** The function of a family for a dtype; undefined where the family has none for it. */
export type Family<F> = (dtype: DType) => F | undefined

// Where a family leaves the sized name of a type out, the C type of that size takes its place.
const otherNames: { readonly [D in DType]?: string } = { i16: 'short', u16: 'ushort' }

/** A family by the text before and after the name of the type. */
export function typedFamily<F>(before: string, after: string): Family<F> {
  const found = new Map<DType, F | undefined>()
  return (dtype) => {
    if (found.has(dtype)) return found.get(dtype)
    const names = [dtypeInfo(dtype).nvshmemName, otherNames[dtype]].filter((name) => name !== undefined)
    const [call] = names.flatMap((name) => functions[`${before}${name}${after}`] ?? []) as F[]
    found.set(dtype, call)
    return call
  }
}

/** A family that has the functions of its types, and for other dtypes those for elements of so many bits. */
export function sizedFamily<F>(before: string, sizedBefore: string, after: string, sizedAfter: string): Family<F> {
  const typed = typedFamily<F>(before, after)
  return (dtype) =>
    typed(dtype) ?? (functions[`${sizedBefore}${8 * dtypeInfo(dtype).bytes}${sizedAfter}`] as F | undefined)
}

/** The dtypes that a family has functions for, for error messages. */
export function dtypesOf(family: Family<unknown>, all: readonly DType[]): string {
  return all.filter((dtype) => family(dtype) !== undefined).join(', ')
}
