/** Links device code at run time with nvJitLink. Needs neither a GPU nor a driver. */
export { CompileError, type Diagnostic, type Severity } from '@shoal/nvrtc/basics'
export type { Linked } from './linked.js'
export { type InputKind, Linker, nvjitlinkVersion } from './linker.js'
export type { LinkOptions } from './linkOptions.js'
