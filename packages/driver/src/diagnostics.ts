/** What looks into a process: ranges for profilers, core dumps, logs, checkpoints, entry points of the driver. */
export * from '@shoal/cuda-base/diagnostics'
