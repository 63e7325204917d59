/** What looks into a process: ranges for profilers, core dumps, logs, checkpoints, entry points. An entry of its own, as few programs need it. */
export { type DeviceReplacement, ProcessCheckpoint, type ProcessState } from './diagnostics/checkpoint.js'
export {
  type CoreDumpScope,
  type CoreDumpSettings,
  coreDumpSetting,
  setCoreDumpSetting,
} from './diagnostics/coreDump.js'
export { type EntryPoint, type EntryPointOptions, entryPoint } from './diagnostics/entryPoint.js'
export { type LogOptions, type LogReading, logPosition, onLog, readLogs, writeLogs } from './diagnostics/logs.js'
export { profile, startProfiler, stopProfiler } from './diagnostics/profiler.js'
