import { formatCudaVersion, type ShoalError, VersionTooNewError, VersionTooOldError } from '@shoal/types'

export interface SignatureQuestion {
  library: string
  symbol: string
  /** version that introduced the generated signature */
  since: number
  /** version of the headers from which the signature was generated */
  generated: number
  /** version of the loaded library */
  installed: number
  /** major versions with a different signature of the symbol */
  otherMajors: readonly number[]
}

/** Returns the error for a function whose loaded signature differs from the generated one; undefined if they match. */
export function signatureError(question: SignatureQuestion): ShoalError | undefined {
  const { library, symbol: api, since, generated, installed, otherMajors } = question
  // Versions older than the listed majors have a different signature too.
  const isOlder = installed < since && otherMajors.some((major) => major * 1000 < since)
  if (!isOlder && !otherMajors.includes(Math.floor(installed / 1000))) return undefined
  const versions = { library, api, installed: formatCudaVersion(installed) }
  return isOlder
    ? new VersionTooOldError({ ...versions, since: formatCudaVersion(since) })
    : new VersionTooNewError({ ...versions, known: formatCudaVersion(generated) })
}
