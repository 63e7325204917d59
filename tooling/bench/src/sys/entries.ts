import { sysPackages } from '@shoal/bindgen/dist/proof/packages.js'
import { deviceLibraryNames } from '@shoal/bindgen/dist/spec/types.js'

/**
 * The entry points of the raw packages for devices; `environment` is the variable that names the library's file.
 * Compilers are not among them: no function of theirs is called often.
 */
export const sysEntries = deviceLibraryNames.map((library) => {
  const { specifier, environment } = sysPackages[library]
  return { library, specifier, environment, package: specifier.split('/').slice(0, 2).join('/') }
})
export type SysEntry = (typeof sysEntries)[number]
