import { CUlimit } from '@shoal/cuda-sys/driver'
import { wrongType } from '@shoal/types'

type WithoutPrefix<Name, Prefix extends string> = Name extends `${Prefix}${infer Rest}` ? Rest : never

/** Limits of a context: names of `CUlimit` without the prefix. */
export type ContextLimit = Exclude<WithoutPrefix<keyof typeof CUlimit, 'CU_LIMIT_'>, 'MAX'>

/** Returns the code of a limit. @throws TypeError */
export function limitCode(limit: ContextLimit, api: string): CUlimit {
  const name = typeof limit === 'string' && limit !== ('MAX' as string) ? `CU_LIMIT_${limit}` : ''
  if (!Object.hasOwn(CUlimit, name)) {
    throw wrongType(api, 'limit', "a limit such as 'STACK_SIZE'", limit)
  }
  return (CUlimit as Readonly<Record<string, CUlimit>>)[name] as CUlimit
}
