/** Diagnostics of a process: profiler ranges, core dumps, logs, checkpoints, entry points of the driver. */
export {
  type CoreDumpScope,
  type CoreDumpSettings,
  coreDumpSetting,
  type DeviceReplacement,
  type EntryPoint,
  type EntryPointOptions,
  entryPoint,
  type LogOptions,
  type LogReading,
  logPosition,
  onLog,
  ProcessCheckpoint,
  type ProcessState,
  readLogs,
  setCoreDumpSetting,
  writeLogs,
} from '@shoal/driver/diagnostics'
export { profile, startProfiler, stopProfiler } from './diagnostics/profiler.js'
