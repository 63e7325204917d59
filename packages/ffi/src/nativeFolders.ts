import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Returns the platform names this process can load. `linux` means glibc, `linuxmusl` musl. */
export function platformNames(): string[] {
  const { platform, arch } = process
  return platform === 'linux' ? [`linux-${arch}`, `linuxmusl-${arch}`] : [`${platform}-${arch}`]
}

/** Returns the platform name for this process's C library. Slow, so for errors only. */
export function platformName(): string {
  const [name = '', withMusl] = platformNames()
  if (withMusl === undefined) return name
  const maps = '/proc/self/maps'
  return existsSync(maps) && readFileSync(maps, 'utf8').includes('/ld-musl-') ? withMusl : name
}

/**
 * Returns folders that may hold the native files of package `name` in `folder`.
 *
 * These are its own build folder and the platform package installed with it. Package managers install only packages for
 * the right C library, so this function need not detect it.
 */
export function nativeFolders(name: string, folder: string): string[] {
  const { resolve } = process.getBuiltinModule('node:module').createRequire(join(folder, 'package.json'))
  return platformNames().flatMap((platform) => {
    const built = join(folder, 'prebuilds', platform)
    try {
      return [built, dirname(resolve(`${name}-${platform}/package.json`))]
    } catch {
      return [built] // another platform, or not installed
    }
  })
}
