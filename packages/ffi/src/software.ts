/** The software device: libraries of `@shoal/sim` that replace NVIDIA's, only on request. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  AlreadyInUseError,
  FeatureNotSupportedError,
  type OptionKeys,
  optionalOptions,
  requireInteger,
} from '@shoal/types'
import { isMainThread } from './mainThread.js'
import { nativeFolders, platformName } from './nativeFolders.js'
import { codePlaces, packageFolder } from './packageFolder.js'

const announcedKey = 'shoal.softwareDeviceAnnounced'
let announced = false
let used = false

/** True if `SHOAL_DEVICE=sim` or {@link useSoftwareDevice} chose the software device. */
export function isSoftwareDevice(): boolean {
  const choice = process.env['SHOAL_DEVICE'] ?? ''
  if (choice === '' || choice === 'gpu') return false
  if (choice === 'sim') return true
  throw new RangeError(`SHOAL_DEVICE must be 'sim' or 'gpu', not '${choice}'`)
}

/** Options of the software device. */
export interface SoftwareDeviceOptions {
  /** Number of virtual devices, 0 to 64. Default: `SHOAL_SIM_DEVICES`, or 2. */
  readonly devices?: number | undefined
}

const keys: OptionKeys<SoftwareDeviceOptions> = { devices: true }

/**
 * Chooses the software device for this process and its child processes.
 *
 * Call it before any library is used.
 *
 * @throws AlreadyInUseError if a library is in use; FeatureNotSupportedError if `devices` is set in a worker;
 * TypeError, RangeError.
 * @example
 * useSoftwareDevice({ devices: 4 })
 */
export function useSoftwareDevice(options?: SoftwareDeviceOptions): void {
  const { devices } = optionalOptions(options, 'useSoftwareDevice', keys)
  if (devices !== undefined) requireInteger(devices, 'useSoftwareDevice', 'devices', 0, 64)
  if (used) {
    if (isSoftwareDevice() && devices === undefined) return
    throw new AlreadyInUseError({
      api: 'useSoftwareDevice',
      object: 'a library',
      reason: 'this process already uses a library; call it before the first use',
    })
  }
  if (devices !== undefined) {
    // A worker's process.env is a copy that C code cannot see.
    if (!isMainThread()) {
      throw new FeatureNotSupportedError({
        library: 'software device',
        api: 'useSoftwareDevice',
        reason: 'the number of devices can be set on the main thread only',
      })
    }
    process.env['SHOAL_SIM_DEVICES'] = String(devices)
  }
  process.env['SHOAL_DEVICE'] = 'sim'
}

/** Records that a library was opened, which fixes the choice. */
export function markLibraryUsed(): void {
  used = true
}

/** Prints once, on stderr, that the software device is in use. */
export function announceSoftwareDevice(): void {
  if (announced) return
  const { getEnvironmentData, setEnvironmentData } = process.getBuiltinModule('node:worker_threads')
  if (getEnvironmentData(announcedKey) === true) return
  announced = true
  setEnvironmentData(announcedKey, true) // workers started later inherit it
  process.stderr.write('shoal: software device in use (SHOAL_DEVICE=sim): computed on this CPU, no GPU involved\n')
}

const furtherPlaces: string[] = []

/** Adds a file from which to resolve the software device. The command line uses it for another program. */
export function findSoftwareDeviceFrom(place: string): void {
  furtherPlaces.push(place)
}

/**
 * Returns the folders of `@shoal/sim`, resolved from this package and the program.
 *
 * The working directory is searched only if the program names it.
 */
function softwarePackages(): string[] {
  const folders: string[] = []
  try {
    folders.push(join(packageFolder(), '..', 'sim'))
  } catch {
    // a moved bundle: the program may still resolve the software device
  }
  for (const place of [...codePlaces(), ...furtherPlaces]) {
    try {
      folders.push(
        dirname(process.getBuiltinModule('node:module').createRequire(place).resolve('@shoal/sim/package.json')),
      )
    } catch {
      // this place does not resolve it; the next one may
    }
  }
  return [...new Set(folders)].filter((folder) => existsSync(join(folder, 'package.json')))
}

/** Returns folders that may hold the software device's libraries. */
export function softwareFolders(): string[] {
  const chosen = process.env['SHOAL_SIM_FOLDER']
  if (chosen !== undefined && chosen !== '') return [chosen]
  return softwarePackages().flatMap((folder) => nativeFolders('@shoal/sim', folder))
}

/** Returns a hint for a chosen software device that lacks the library. */
export function softwareHint(): string {
  const or = 'or unset SHOAL_DEVICE to use a GPU'
  if (process.env['SHOAL_SIM_FOLDER'])
    return `name the folder with the libraries of @shoal/sim in SHOAL_SIM_FOLDER, ${or}`
  if (softwarePackages().length === 0) return `install @shoal/sim beside the package that uses it, ${or}`
  const platform = platformName()
  return (
    `@shoal/sim is installed, without this library for ${platform}: install its optional dependency @shoal/sim-${platform}, ` +
    `or make -C native builds it there, on Linux with g++, ${or}`
  )
}
