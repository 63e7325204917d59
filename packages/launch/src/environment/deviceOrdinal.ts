import { type Environment, numberIn } from './variables.js'

/**
 * The device of this process, where that is not its number on the machine: `SHOAL_DEVICE_ORDINAL` says so, or the
 * launcher shows it one device only, as `srun --gpus-per-task=1` does. @throws LaunchEnvironmentError
 */
export function deviceOrdinalIn(environment: Environment): number | undefined {
  const given = numberIn(environment, 'SHOAL_DEVICE_ORDINAL')
  // The software device shows all of its devices to all processes.
  if (given !== undefined || environment['SHOAL_DEVICE'] === 'sim') return given
  const visible = environment['CUDA_VISIBLE_DEVICES']?.trim() ?? ''
  return visible === '' || visible.includes(',') ? undefined : 0
}
