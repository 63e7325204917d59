import type { Suite } from '../../../suite.js'
import { accessCases } from './access.js'
import { lifetimeCases } from './lifetimes.js'
import { mappingCases } from './mappings.js'
import { physicalCases } from './physical.js'
import { reservationCases } from './reservations.js'

export const virtualMemorySuite: Suite = {
  name: 'driver virtual memory',
  cases: [...reservationCases, ...physicalCases, ...mappingCases, ...accessCases, ...lifetimeCases],
}
