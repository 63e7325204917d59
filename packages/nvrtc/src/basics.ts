/** Shared parts of NVRTC and nvJitLink: options as text, logs, and calls on this thread or another. */
export { CompileError } from './log/compileError.js'
export { type Diagnostic, parseLog, type Severity } from './log/diagnostic.js'
export { type Abortable, untilAborted } from './native/abort.js'
export { type CallStep, type Calls, runHere, runOffThread } from './native/calls.js'
export { CStrings } from './native/cStrings.js'
export { compileKeys, requireCache } from './options/compileOptions.js'
export { encodeOptions, type OptionRules } from './options/encode.js'
export { programKeys, readProgramOptions } from './program/programOptions.js'
