import type { Random } from '../support/random.js'
import type { ReferenceCase } from './cases.js'
import { deviceCases, poolCases, splitCases, streamCases } from './deviceCases.js'
import { graphCases } from './graphCases.js'
import { kernelCases, occupancyCases } from './kernelCases.js'
import { tensorMapCases } from './tensorMapCases.js'
import { textureCases } from './textureCases.js'

/** Constants by their names, as both sides know them. */
export interface KnownNames {
  readonly function: readonly string[]
  readonly device: readonly string[]
  readonly limit: readonly string[]
}

/** All that is asked; texels and places are new ones for each seed. */
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
