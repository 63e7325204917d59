import { type Environment, numberIn } from './variables.js'

/**
 * Returns the device of this process, if it differs from the local rank.
 *
 * `SHOAL_DEVICE_ORDINAL` sets it. It is 0 if the launcher shows the process only one device, such as
 * `srun --gpus-per-task=1`. @throws LaunchEnvironmentError
 */
export function deviceOrdinalIn(environment: Environment): number | undefined {
  const given = numberIn(environment, 'SHOAL_DEVICE_ORDINAL')
  // The software device shows all its devices to all processes.
  if (given !== undefined || environment['SHOAL_DEVICE'] === 'sim') return given
  const visible = environment['CUDA_VISIBLE_DEVICES']?.trim() ?? ''
  return visible === '' || visible.includes(',') ? undefined : 0
}
