import { SymbolNotFoundError, VersionTooOldError } from '@shoal/types'
import type { Context } from '../../core/context/context.js'
import { check, Status } from '../../core/errors.js'
import { scratch } from '../../core/native.js'
import type { Kernel } from './kernel.js'
import { parameterBytes, parameterName } from './signature.js'

/** Position and size of a kernel parameter. */
export interface ParameterInfo {
  /** Offset from the first parameter, in bytes. */
  readonly offset: number
  /** Size in bytes. */
  readonly bytes: number
}

/** Calls a libcuda function for each parameter index and returns the results. @throws StatusError */
export function parameterInfo(
  context: Context,
  api: string,
  ask: (index: number, offset: bigint, size: bigint) => number,
): readonly ParameterInfo[] {
  const out = scratch()
  const parameters: ParameterInfo[] = []
  for (;;) {
    const status = context.run(() => ask(parameters.length, out.address, out.address + 8n))
    // The driver returns this status after the last parameter.
    if (status === Status.invalidValue) return parameters
    check(status, api)
    parameters.push({ offset: Number(out.u64[0]), bytes: Number(out.u64[1]) })
  }
}

/**
 * Refuses a missing signature: the image contains the sizes of the parameters, but not their types. @throws TypeError
 * with these sizes
 */
export function refuseNone(kernel: Kernel, api: string): void {
  const bytes = sizesOf(kernel)
  if (bytes === undefined || bytes.length === 0) return
  const expected = `an array with the type of each parameter of ${kernel.name} (of ${bytes.join(', ')} bytes)`
  throw new TypeError(`${api}: signature must be ${expected}, not undefined`)
}

/** Returns the sizes of a kernel's parameters; undefined if the driver does not report them. */
function sizesOf(kernel: Kernel): readonly number[] | undefined {
  try {
    return kernel.parameters.map(({ bytes }) => bytes)
  } catch (error) {
    if (error instanceof VersionTooOldError || error instanceof SymbolNotFoundError) return undefined
    throw error
  }
}

/**
 * Compares a kernel's signature with the parameters in its compiled code, if the driver reports them.
 * @throws TypeError
 */
export function checkParameters(kernel: Kernel, api: string): void {
  const { name, signature } = kernel
  const declared = sizesOf(kernel)
  if (declared === undefined) return
  if (declared.length !== signature.length) {
    const count = `${declared.length}, not ${signature.length}`
    throw new TypeError(`${api}: signature must name all parameters of ${name}, which has ${count}`)
  }
  for (const [index, parameter] of signature.entries()) {
    const bytes = declared[index]
    const given = parameterBytes(parameter)
    if (bytes === given) continue
    throw new TypeError(
      `${api}: signature[${index}] must have ${bytes} bytes, as in ${name}, not the ${given} of ${parameterName(parameter)}`,
    )
  }
}
