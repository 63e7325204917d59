import * as native from '@shoal/nvshmem-sys'
import { type DType, dtypeInfo } from '@shoal/types'

// Each family has a function per type, such as nvshmem_float_put, and some have one per element size. The names form
// the table, so the code does not repeat it. A test covers all of it.
const functions = native as unknown as { readonly [name: string]: unknown }

/** Returns the function of a family for a dtype; undefined if there is none. */
export type Family<F> = (dtype: DType) => F | undefined

// C type names for families without the sized names.
const otherNames: { readonly [D in DType]?: string } = { i16: 'short', u16: 'ushort' }

/** Makes a family from the text before and after the type name. */
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

/** Makes a family with functions per type, and per element size for other dtypes. */
export function sizedFamily<F>(before: string, sizedBefore: string, after: string, sizedAfter: string): Family<F> {
  const typed = typedFamily<F>(before, after)
  return (dtype) =>
    typed(dtype) ?? (functions[`${sizedBefore}${8 * dtypeInfo(dtype).bytes}${sizedAfter}`] as F | undefined)
}

/** Lists the dtypes of a family, for error messages. */
export function dtypesOf(family: Family<unknown>, all: readonly DType[]): string {
  return all.filter((dtype) => family(dtype) !== undefined).join(', ')
}
