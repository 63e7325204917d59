import { sysPackages } from '@shoal/bindgen/dist/proof/packages.js'
import { libraryNames } from '@shoal/bindgen/dist/spec/types.js'

/** The entry points of the raw packages; `environment` is the variable that names the library's file. */
export const sysEntries = libraryNames.map((library) => {
  const { specifier, environment } = sysPackages[library]
  return { library, specifier, environment, package: specifier.split('/').slice(0, 2).join('/') }
})
export type SysEntry = (typeof sysEntries)[number]
