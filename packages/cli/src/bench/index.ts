/**
 * Exports parts of the benchmarks to Shoal's own repository, which compares them with C.
 *
 * Do not import this module in a program: every version may change its exports.
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
