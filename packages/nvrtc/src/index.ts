/** CUDA C++ compiled at run time by NVRTC. Needs neither a GPU nor a driver. */
export { CompileError } from './log/compileError.js'
export type { Diagnostic, Severity } from './log/diagnostic.js'
export type { Abortable } from './native/abort.js'
export type { Architecture, CompileOptions } from './options/compileOptions.js'
export { nvrtcVersion, type SupportedArchitecturesOptions, supportedArchitectures } from './program/architectures.js'
export type { Compiled } from './program/compiled.js'
export { pchHeapSize, setPchHeapSize } from './program/precompiledHeaders.js'
export { Program, type ProgramOptions } from './program/program.js'
