import type { Suite } from '../../../suite.js'
import { arrivalCases } from './arrivals.js'
import { exchangeCases } from './exchange.js'
import { handleCases } from './handles.js'
import { ipcCases } from './ipc.js'
import { poolCases } from './pools.js'
import { reachCases } from './reach.js'

export const sharingSuite: Suite = {
  name: 'driver sharing',
  cases: [...exchangeCases, ...reachCases, ...handleCases, ...poolCases, ...ipcCases, ...arrivalCases],
}
