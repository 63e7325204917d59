/**
 * Process diagnostics: profiler ranges, core dumps, logs, checkpoints, entry points. A separate entry, because few
 * programs need it.
 */
export { type DeviceReplacement, ProcessCheckpoint, type ProcessState } from './work/diagnostics/checkpoint.js'
export {
  type CoreDumpScope,
  type CoreDumpSettings,
  coreDumpSetting,
  setCoreDumpSetting,
} from './work/diagnostics/coreDump.js'
export { type EntryPoint, type EntryPointOptions, entryPoint } from './work/diagnostics/entryPoint.js'
export { type LogOptions, type LogReading, logPosition, onLog, readLogs, writeLogs } from './work/diagnostics/logs.js'
export { profile, startProfiler, stopProfiler } from './work/diagnostics/profiler.js'
