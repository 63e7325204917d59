import { formatCudaVersion, type ShoalError, VersionTooNewError, VersionTooOldError } from '@shoal/types'

export interface SignatureQuestion {
  library: string
  symbol: string
  /** version that brought the signature that was generated */
  since: number
  /** version of the headers that it was generated from */
  generated: number
  /** version that is loaded */
  installed: number
  /** majors in which the symbol has another signature */
  otherMajors: readonly number[]
}

/** Why a function cannot be called in the loaded version, or undefined where its signature is the one generated. */
export function signatureError(question: SignatureQuestion): ShoalError | undefined {
  const { library, symbol: api, since, generated, installed, otherMajors } = question
  // What is older than the majors of the list has another signature too.
  const isOlder = installed < since && otherMajors.some((major) => major * 1000 < since)
  if (!isOlder && !otherMajors.includes(Math.floor(installed / 1000))) return undefined
  const versions = { library, api, installed: formatCudaVersion(installed) }
  return isOlder
    ? new VersionTooOldError({ ...versions, since: formatCudaVersion(since) })
    : new VersionTooNewError({ ...versions, known: formatCudaVersion(generated) })
}
