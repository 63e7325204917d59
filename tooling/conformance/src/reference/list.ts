import type { Random } from '../support/random.js'
import type { ReferenceCase } from './cases.js'
import { deviceCases, poolCases, splitCases, streamCases } from './deviceCases.js'
import { graphCases } from './graphCases.js'
import { kernelCases, occupancyCases } from './kernelCases.js'
import { tensorMapCases } from './tensorMapCases.js'
import { textureCases } from './textureCases.js'

/** The names of constants that both sides know. */
export interface KnownNames {
  readonly function: readonly string[]
  readonly device: readonly string[]
  readonly limit: readonly string[]
}

/** Returns all questions. Each seed gives new texels and places. */
export function referenceCases(names: KnownNames, random: Random): readonly ReferenceCase[] {
  return [
    ...deviceCases(names.device, names.limit),
    ...splitCases,
    ...streamCases,
    ...poolCases,
    ...graphCases,
    ...kernelCases(names.function),
    ...occupancyCases,
    ...textureCases(random),
    ...tensorMapCases(random),
  ]
}
