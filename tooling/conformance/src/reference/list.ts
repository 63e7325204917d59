import type { Random } from '../support/random.js'
import type { ReferenceCase } from './cases.js'
import { graphCases } from './graphCases.js'
import { kernelCases, occupancyCases } from './kernelCases.js'
import { textureCases } from './textureCases.js'

/** Constants by their names, as both sides know them. */
export interface KnownNames {
  readonly function: readonly string[]
  readonly device: readonly string[]
}

/** All that is asked; texels and places are new ones for each seed. */
export function referenceCases(names: KnownNames, random: Random): readonly ReferenceCase[] {
  return [...graphCases, ...kernelCases(names.function), ...occupancyCases, ...textureCases(random)]
}
