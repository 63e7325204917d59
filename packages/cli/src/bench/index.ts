/**
 * Parts of the benchmarks, for the comparison with C in Shoal's own repository.
 *
 * Not for programs: it may change with every version.
 * @packageDocumentation
 */
export { UsageError } from '../command.js'
export { type Operation, operations, prepareCall, prepareStart } from './collectives/operations.js'
export { oneOf, parseCommandLine, wholeNumber } from './commandLine.js'
export {
  callsPerBurst,
  copyBytes,
  type DriverCalls,
  emptyKernels,
  makeDriverCalls,
  poolBytes,
  timeOfCall,
} from './driverCalls.js'
export { number, table } from './report/columns.js'
export { machineFacts } from './report/report.js'
export { type Loop, repeat, repeatAwaited, timeOf, timeOfAwaited } from './timing.js'
