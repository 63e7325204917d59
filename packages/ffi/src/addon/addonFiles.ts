import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AddonLoadError, type LoadAttempt } from '@shoal/types'
import { nativeFolders, platformName } from '../nativeFolders.js'
import { besideCode, codePlaces, packageFolder } from '../packageFolder.js'

const variable = 'SHOAL_FFI_ADDON'
const fileName = 'shoal_ffi.node'
/** Platforms with a published addon package. */
const published = ['linux-x64', 'linux-arm64']

/** Returns candidate addon files: the one that `SHOAL_FFI_ADDON` names, or those of the packages. */
export function addonFiles(attempts: LoadAttempt[]): { step: string; file: string }[] {
  const chosen = process.env[variable]
  if (chosen !== undefined && chosen !== '') return [{ step: 'environment', file: chosen }]
  const files: { step: string; file: string }[] = []
  try {
    const folders = nativeFolders('@shoal/ffi', packageFolder())
    files.push(...folders.map((folder) => ({ step: 'prebuilt', file: join(folder, fileName) })))
  } catch {
    const outcome = `not installed in sight of ${codePlaces().join(', ')}`
    attempts.push({ step: 'package', candidate: '@shoal/ffi', outcome })
  }
  const beside = besideCode(fileName).map((file) => ({ step: 'bundle', file }))
  const there = [...files.filter(({ file }) => existsSync(file)), ...beside]
  if (there.length === 0 && files[0] !== undefined)
    attempts.push({ step: 'prebuilt', candidate: files[0].file, outcome: 'not there' })
  return there
}

/** Returns the error, with hints for this platform and failure. */
export function addonLoadError(attempts: readonly LoadAttempt[]): AddonLoadError {
  const platform = platformName()
  return new AddonLoadError({ attempts, platform, hints: hints(attempts, platform) })
}

function hints(attempts: readonly LoadAttempt[], platform: string): string[] {
  const name = `@shoal/ffi-${platform}`
  const outcomes = attempts.map(({ outcome }) => outcome).join('\n')
  if (process.env[variable])
    return [`${variable} names the file, and no other is tried: correct it, or unset it for the installed addon.`]
  const isPublished = published.includes(platform)
  const install = `npm install --include=optional ${name}`
  if (attempts.some(({ step }) => step === 'package'))
    return [
      `The program was bundled, and moved away from its packages: copy ${fileName} of ${name} beside the bundle, or leave ` +
        '@shoal/* out of the bundle, and install them.',
    ]
  if (/not there$/m.test(outcomes)) {
    if (!isPublished) return [`The addon is not published for ${platform}: build it, as below.`]
    return [
      `Install ${name}, an optional dependency of @shoal/ffi: it was left out (--omit=optional, --no-optional), or the ` +
        `packages were installed on another platform. ${install}`,
    ]
  }
  if (/ is not a function$/m.test(outcomes))
    return [`The addon is of another version than @shoal/ffi: install both anew. ${install}`]
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
