import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AddonLoadError, type LoadAttempt } from '@shoal/types'
import { nativeFolders, platformName } from '../nativeFolders.js'
import { packageFolder } from '../packageFolder.js'

const variable = 'SHOAL_FFI_ADDON'
/** What is built and published for, each as a package of its own. */
const published = ['linux-x64', 'linux-arm64']

/** Files that may be the addon: the one that was named, or those that lie where packages have them. */
export function addonFiles(attempts: LoadAttempt[]): { step: string; file: string }[] {
  const chosen = process.env[variable]
  if (chosen !== undefined && chosen !== '') return [{ step: 'environment', file: chosen }]
  let folders: string[]
  try {
    folders = nativeFolders('@shoal/ffi', packageFolder())
  } catch {
    attempts.push({ step: 'package', candidate: '@shoal/ffi', outcome: `not installed in sight of ${import.meta.url}` })
    return []
  }
  const files = folders.map((folder) => join(folder, 'shoal_ffi.node'))
  const there = files.filter((file) => existsSync(file))
  if (there.length === 0) attempts.push({ step: 'prebuilt', candidate: files[0] as string, outcome: 'not there' })
  return there.map((file) => ({ step: 'prebuilt', file }))
}

/** The error, with advice for what was seen. */
export function addonLoadError(attempts: readonly LoadAttempt[]): AddonLoadError {
  const platform = platformName()
  return new AddonLoadError({ attempts, platform, hints: hints(attempts, platform) })
}

function hints(attempts: readonly LoadAttempt[], platform: string): string[] {
  const outcomes = attempts.map(({ outcome }) => outcome).join('\n')
  if (process.env[variable])
    return [`${variable} names the file, and no other is tried: correct it, or unset it for the installed addon.`]
  const name = `@shoal/ffi-${platform}`
  const isPublished = published.includes(platform)
  const install = `npm install --include=optional ${name}`
  if (attempts.some(({ step }) => step === 'package'))
    return [
      'The program was bundled or moved away from its packages: leave @shoal/* out of the bundle, and install them.',
    ]
  if (/not there$/m.test(outcomes)) {
    if (!isPublished) return [`The addon is not published for ${platform}: build it, as below.`]
    return [
      `Install ${name}, an optional dependency of @shoal/ffi: it was left out (--omit=optional, --no-optional), or the ` +
        `packages were installed on another platform. ${install}`,
    ]
  }
  if (/^built for /m.test(outcomes))
    return [`The packages were installed on another platform; install them here: ${install}`]
  if (/permission denied/i.test(outcomes))
    return ['Let the user of this process read the file, and the folders above it.']
  if (/musl|\blibc\.so:|ld-linux|GLIBC_/.test(outcomes))
    return [`The addon is for another C library, or for a newer one; this system is ${platform}. ${install}`]
  if (/truncated|invalid ELF header|file too short|not a regular file|a folder/.test(outcomes))
    return [`The file is damaged: remove node_modules and install again.`]
  return []
}
