import { sysPackages } from '@shoal/bindgen/dist/proof/packages.js'
import { deviceLibraryNames } from '@shoal/bindgen/dist/spec/types.js'

/**
 * The entry points of the raw packages for devices; `environment` is the variable for the library's file. Does not
 * include the compilers, because none of their functions is called often.
 */
export const sysEntries = deviceLibraryNames.map((library) => {
  const { specifier, environment } = sysPackages[library]
  return { library, specifier, environment, package: specifier.split('/').slice(0, 2).join('/') }
})
export type SysEntry = (typeof sysEntries)[number]
