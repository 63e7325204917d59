import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Names of what this process may load, as platform packages have them: a plain `linux` has glibc. */
export function platformNames(): string[] {
  const { platform, arch } = process
  return platform === 'linux' ? [`linux-${arch}`, `linuxmusl-${arch}`] : [`${platform}-${arch}`]
}

/** The one of them that this process's C library belongs to. Slow: for errors. */
export function platformName(): string {
  const [name = '', withMusl] = platformNames()
  if (withMusl === undefined) return name
  const maps = '/proc/self/maps'
  return existsSync(maps) && readFileSync(maps, 'utf8').includes('/ld-musl-') ? withMusl : name
}

/**
 * Folders that may hold the native files of the package `name`, which lies in `folder`: what was built there, and the
 * platform package that came with it. Only those that fit the C library are installed, so which one it is need not be
 * known.
 */
export function nativeFolders(name: string, folder: string): string[] {
  const { resolve } = process.getBuiltinModule('node:module').createRequire(join(folder, 'package.json'))
  return platformNames().flatMap((platform) => {
    const built = join(folder, 'prebuilds', platform)
    try {
      return [built, dirname(resolve(`${name}-${platform}/package.json`))]
    } catch {
      return [built] // for another platform, or left out
    }
  })
}
