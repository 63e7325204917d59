/** Modules from CUDA C++ text, compiled at run time by NVRTC. */
export {
  type Abortable,
  CompileError,
  type CompileOptions,
  type Diagnostic,
  Program,
  type ProgramOptions,
} from '@shoal/nvrtc'
export { compile, compileSync, type ModuleCompileOptions } from './work/module/compileModule.js'
